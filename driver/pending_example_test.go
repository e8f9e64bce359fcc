package driver_test

import (
	"context"
	"fmt"
	"log"

	"tributary/driver"
)

// A training step reduces its arrays while it computes the next one.
func ExampleMember_StartAllReduce() {
	ctx := context.Background()
	card, err := driver.Open(ctx, "cpu:", driver.WithWorkers(2))
	if err != nil {
		log.Fatal(err)
	}
	defer card.Close()
	job, err := card.Configure(ctx, driver.JobConfig{})
	if err != nil {
		log.Fatal(err)
	}

	layers := [2][3][]float32{ // by rank
		{{1, 2}, {3}, {4, 5, 6}},
		{{10, 20}, {30}, {40, 50, 60}},
	}
	var pending []*driver.Pending
	for layer := range 3 {
		for rank := range 2 {
			p, err := job.Member(rank).StartAllReduce(ctx, layers[rank][layer])
			if err != nil {
				log.Fatal(err)
			}
			pending = append(pending, p)
		}
	}
	for _, p := range pending {
		if err := p.Wait(ctx); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Println(layers[0], layers[1])
	// Output:
	// [[11 22] [33] [44 55 66]] [[11 22] [33] [44 55 66]]
}
