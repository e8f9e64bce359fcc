package elastic_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"sync"

	"tributary/driver/collective/elastic"
	"tributary/driver/collective/membership"
	"tributary/driver/wire"
)

// Three members, here goroutines of one process, find each other in memory and sum their arrays.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "elastic")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	var wg sync.WaitGroup
	for i, id := range []string{"a", "b", "c"} {
		wg.Go(func() {
			engine, err := membership.Open(ctx, "memory:example")
			if err != nil {
				log.Fatal(err)
			}
			defer engine.Close()
			self := elastic.Self{ID: id, Address: "unix:" + filepath.Join(dir, id)}
			group, err := elastic.Join(ctx, engine, self, elastic.Config{Name: "example", Token: "secret", Expect: 3})
			if err != nil {
				log.Fatal(err)
			}
			array := []byte{1, 0, 0, 0, byte(i), 0, 0, 0}
			if err := group.AllReduce(ctx, wire.Int32, array, array); err != nil {
				log.Fatal(err)
			}
			if err := group.Close(ctx); err != nil {
				log.Fatal(err)
			}
			if id == "a" {
				fmt.Println(array)
			}
		})
	}
	wg.Wait()
	// Output: [3 0 0 0 3 0 0 0]
}
