package collective_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"sync"

	"tributary/driver/collective"
	"tributary/driver/wire"
)

// Three members, here goroutines of one process, sum their arrays by a ring.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "ring")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	group := collective.Group{Name: "example", Generation: 1, Token: "secret"}
	for _, id := range []string{"a", "b", "c"} {
		group.Members = append(group.Members, collective.Member{ID: id, Address: "unix:" + filepath.Join(dir, id)})
	}
	var wg sync.WaitGroup
	for rank := range group.Members {
		mine := group
		mine.Rank = rank
		wg.Go(func() {
			c, err := collective.Open(ctx, collective.Ring, mine)
			if err != nil {
				log.Fatal(err)
			}
			array := []float32{1, float32(rank)}
			if err := collective.AllReduce(ctx, c, wire.FP32, array, array); err != nil {
				log.Fatal(err)
			}
			if err := c.Close(ctx); err != nil {
				log.Fatal(err)
			}
			if rank == 0 {
				fmt.Println(array)
			}
		})
	}
	wg.Wait()
	// Output: [3 3]
}
