package sweep

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"tributary/driver"
	"tributary/driver/element"
)

// TestJobsSumLikeTheModel runs jobs of one card concurrently.
func TestJobsSumLikeTheModel(t *testing.T) {
	for _, name := range []string{
		"model:jobs=2,lanes=2,workers=3,chunk=8,window=2",
		"model:jobs=4,lanes=4,workers=5,chunk=64,window=8,format=bf16,result=fp32,sum=exact",
		"model:jobs=16,lanes=1,workers=4,chunk=20,window=16,format=int32,sum=fused,saturate=true",
	} {
		t.Run(name, func(t *testing.T) { sumSideBySide(t, name) })
	}
}

// sumSideBySide keeps as many jobs on a card as it has room for. Each job makes three reductions
// with random members, chunks, windows and lengths, and another job replaces it. Every bit is
// compared with the model.
func sumSideBySide(t *testing.T, name string) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	card, err := driver.Open(ctx, name)
	if err != nil {
		t.Fatal(err)
	}
	defer card.Close()
	var all sync.WaitGroup
	for n := range card.Info().Jobs {
		all.Go(func() {
			rng := rand.New(rand.NewPCG(card.Info().ConfigHash, uint64(n)))
			for range 5 {
				cfg := randomJob(rng, card.Info())
				if err := reduceAtRandom(ctx, card, cfg, rng); err != nil {
					t.Errorf("%+v: %v", cfg, err)
					return
				}
			}
		})
	}
	all.Wait()
}

// randomJob returns a job for which a card always has room, as long as all its jobs come from
// here.
func randomJob(rng *rand.Rand, info driver.Info) driver.JobConfig {
	ports := rng.Perm(info.Ports)[:1+rng.IntN(info.Ports)]
	slices.Sort(ports)
	window := max(1, info.Window/info.Jobs)
	for window > 1 && rng.IntN(2) == 0 {
		window /= 2
	}
	return driver.JobConfig{Ports: ports, Chunk: info.Lanes * (1 + rng.IntN(info.Chunk/info.Lanes)), Window: window, FirstVID: rng.Uint32()}
}

// reduceAtRandom sets a job up, sums three arrays of random lengths, and ends it.
func reduceAtRandom(ctx context.Context, card *driver.Card, cfg driver.JobConfig, rng *rand.Rand) error {
	job, err := card.Configure(ctx, cfg)
	if err != nil {
		return err
	}
	info := card.Info()
	for range 3 {
		elements := 1 + rng.IntN(6*cfg.Window*cfg.Chunk)
		inputs := someInputs(info, rng.Uint64(), len(cfg.Ports), elements)
		sum := make([]byte, elements*element.Size(info.Result))
		if err := job.ReduceBytes(ctx, sum, inputs); err != nil {
			return fmt.Errorf("%d elements: %w", elements, err)
		}
		if err := compare(info, cfg.Ports, inputs, sum); err != nil {
			return err
		}
	}
	return job.Close(ctx)
}
