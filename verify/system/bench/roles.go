package main

// The roles of this program beside its own: a member of a job on a shared card, a process of a ring,
// and a rogue client. A player obeys orders on its standard input, and ends with that.

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"tributary/driver"
	"tributary/driver/frame"
	"tributary/driver/transport"
	"tributary/driver/wire"

	_ "tributary/driver/transport/serve" // registers its scheme
)

// play is the whole program of a player.
func play(role string) {
	var err error
	switch role {
	case "member":
		err = playMember()
	case "ring":
		err = playRing()
	case "rogue":
		err = playRogue()
	default:
		err = fmt.Errorf("there is no role %q", role)
	}
	if err != nil {
		_ = json.NewEncoder(os.Stdout).Encode(report{Failure: role + ": " + err.Error()}) // without a reader nobody waits
		os.Exit(1)
	}
	os.Exit(0)
}

// settings reads the settings of a player.
func settings(to any) error { return json.Unmarshal([]byte(os.Getenv(settingsVariable)), to) }

// memberSettings are those of a member. The first member makes the job.
type memberSettings struct {
	Card     string
	Workers  int
	Rank     int
	Ticket   string // empty: make the job
	Elements int    // of a call
}

// playMember joins a job and makes calls.
func playMember() error {
	var s memberSettings
	if err := settings(&s); err != nil {
		return err
	}
	ctx := context.Background()
	m, err := s.join(ctx)
	if err != nil {
		return err
	}
	reports := json.NewEncoder(os.Stdout)
	if err := reports.Encode(report{Ticket: m.Job().Ticket()}); err != nil {
		return err
	}
	if err := m.Job().AwaitMembers(ctx); err != nil {
		return err
	}
	array := make([]float32, s.Elements)
	reduce := func() error { return m.AllReduce(ctx, array) }
	return obey(reports, reduce, func() error { return firstCall(array, s.Rank, s.Workers, reduce) })
}

// join makes the job, or joins it.
func (s *memberSettings) join(ctx context.Context) (*driver.Member, error) {
	if s.Ticket != "" {
		return driver.Join(ctx, s.Ticket, s.Rank)
	}
	card, err := driver.Open(ctx, s.Card)
	if err != nil {
		return nil, err
	}
	job, err := card.Configure(ctx, driver.JobConfig{Workers: s.Workers, Here: []int{s.Rank}})
	if err != nil {
		return nil, err
	}
	return job.Member(s.Rank), nil
}

// firstCall reduces an array in place, and checks the sums. The array is zeros afterwards, so that later
// calls may follow without end.
func firstCall(array []float32, rank, workers int, reduce func() error) error {
	for i := range array {
		array[i] = float32((rank + 1) * (i%7 + 1))
	}
	if err := reduce(); err != nil {
		return err
	}
	for i, x := range array {
		if want := float32(workers * (workers + 1) / 2 * (i%7 + 1)); x != want {
			return fmt.Errorf("sum %d is %g, not %g", i, x, want)
		}
	}
	clear(array)
	return nil
}

// obey carries out orders to make calls until there are no more. first is the first call.
func obey(reports *json.Encoder, call, first func() error) error {
	var complete atomic.Int64
	failed := make(chan error, 1)
	orders := make(chan order)
	go func() {
		defer close(orders)
		for in := json.NewDecoder(os.Stdin); ; {
			var o order
			if in.Decode(&o) != nil {
				return
			}
			orders <- o
		}
	}()
	if err := first(); err != nil {
		return err
	}
	var repeat sync.Once
	for {
		select {
		case err := <-failed:
			return err
		case o, more := <-orders:
			if !more {
				return nil
			}
			r := report{}
			switch {
			case o.Repeat:
				repeat.Do(func() {
					go func() {
						for {
							if err := call(); err != nil {
								failed <- err
								return
							}
							complete.Add(1)
						}
					}()
				})
			default:
				before := time.Now()
				for range o.Calls {
					if err := call(); err != nil {
						return err
					}
				}
				r.Seconds = time.Since(before).Seconds()
			}
			r.Calls = int(complete.Load())
			if err := reports.Encode(r); err != nil {
				return err
			}
		}
	}
}

// rogueBytes is how much a rogue writes at once.
const rogueBytes = 64 << 10

// playRogue opens a session of a card, and sends what the daemon must drop while its orders say so:
// frames of jobs that it does not take part in, and random bytes. It reads nothing.
func playRogue() error {
	var card string
	if err := settings(&card); err != nil {
		return err
	}
	conn, err := transport.Open(context.Background(), card, transport.Needs{})
	if err != nil {
		return err
	}
	reports := json.NewEncoder(os.Stdout)
	if err := reports.Encode(report{}); err != nil {
		return err
	}
	var send atomic.Bool
	changed := make(chan struct{}, 1)
	failed := make(chan error, 1)
	go func() {
		for rubbish := makeRubbish(); ; {
			if !send.Load() {
				<-changed
				continue
			}
			if _, err := conn.Write(rubbish); err != nil {
				failed <- err
				return
			}
		}
	}()
	for orders := json.NewDecoder(os.Stdin); ; {
		var o order
		if orders.Decode(&o) != nil {
			return nil
		}
		select {
		case err := <-failed: // the row would not measure a rogue
			return err
		default:
		}
		send.Store(o.Send)
		select {
		case changed <- struct{}{}:
		default:
		}
		if err := reports.Encode(report{}); err != nil {
			return err
		}
	}
}

// makeRubbish returns frames of others' jobs, and random bytes between them.
func makeRubbish() []byte {
	random := rand.New(rand.NewPCG(18, 1))
	var b []byte
	for len(b) < rogueBytes {
		h := frame.Header{Kind: wire.KindData, Format: wire.FP32, Job: uint8(random.UintN(2)), Rank: uint8(random.UintN(4)),
			Epoch: uint16(random.Uint32()), VID: random.Uint32(), Length: 256}
		b = frame.Append(b, &h, make([]byte, 4*256))
		for range 1024 {
			b = append(b, byte(random.Uint32()))
		}
	}
	return b
}
