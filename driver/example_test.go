package driver_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"tributary/driver"
)

// Open a card, configure a job, reduce. The README of the repository shows the same
// lines.
func Example() {
	ctx := context.Background()
	card, err := driver.Open(ctx, "cpu:", driver.WithWorkers(3))
	check(err)
	defer card.Close()
	job, err := card.Configure(ctx, driver.JobConfig{})
	check(err)
	sum := make([]float32, 2)
	err = job.Reduce(ctx, sum, [][]float32{{1, 2}, {10, 20}, {100, 200}})
	check(err)
	fmt.Println(sum) // [111 222]
	// Output: [111 222]
}

// check ends the program on an error.
func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// A late worker: at the deadline the card sums without it, and the worker gets the same result.
func ExampleMember_Partials() {
	ctx := context.Background()
	card, err := driver.Open(ctx, "cpu:", driver.WithWorkers(3))
	if err != nil {
		log.Fatal(err)
	}
	defer card.Close()
	job, err := card.Configure(ctx, driver.JobConfig{Deadline: 2 * time.Second, Partial: true})
	if err != nil {
		log.Fatal(err)
	}
	gradients := [][]float32{{1, 2}, {10, 20}, {100, 200}}
	reduce := func(rank int) {
		if err := job.Member(rank).AllReduce(ctx, gradients[rank]); err != nil {
			log.Fatal(err)
		}
	}
	var inTime sync.WaitGroup
	inTime.Go(func() { reduce(0) })
	inTime.Go(func() { reduce(2) })
	inTime.Wait()
	reduce(1) // late
	fmt.Println(gradients[1])
	for _, p := range job.Member(1).Partials() {
		fmt.Printf("elements %d to %d are the sums of ranks %v\n", p.From, p.To-1, p.Ranks)
	}
	if err := job.Close(ctx); err != nil {
		log.Fatal(err)
	}
	// Output:
	// [101 202]
	// elements 0 to 1 are the sums of ranks [0 2]
}

// A card with another format than fp32: bf16 arrays hold encodings, and the results have the
// card's wider result format.
func ExampleReduce() {
	ctx := context.Background()
	card, err := driver.Open(ctx, "cpu:format=bf16,result=fp32,sum=exact", driver.WithWorkers(2))
	if err != nil {
		log.Fatal(err)
	}
	defer card.Close()
	job, err := card.Configure(ctx, driver.JobConfig{})
	if err != nil {
		log.Fatal(err)
	}
	gradients := [][]uint16{{0x3f80, 0x4000}, {0x3b80, 0x4040}} // 1, 2 and 2^-8, 3
	sum := make([]float32, 2)
	if err := driver.Reduce(ctx, job, sum, gradients); err != nil {
		log.Fatal(err)
	}
	fmt.Println(sum)
	// Output: [1.0039062 5]
}

// Find the sums of a job that overflowed fp32.
func ExampleJob_Exceptions() {
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
	gradients := [][]float32{{1, 3e38}, {2, 3e38}}
	sum := make([]float32, 2)
	if err := job.Reduce(ctx, sum, gradients); err != nil {
		log.Fatal(err)
	}
	exceptions, err := job.Exceptions(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(sum, exceptions.Overflow.Count, "overflow, the first in chunk", exceptions.Overflow.VID)
	// Output: [3 +Inf] 1 overflow, the first in chunk 0
}

// Each worker in a goroutine of its own, with several reductions.
func ExampleMember_AllReduce() {
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
	var workers sync.WaitGroup
	for rank := range 2 {
		workers.Go(func() {
			weights := []float32{float32(rank + 1)}
			for range 3 {
				if err := job.Member(rank).AllReduce(ctx, weights); err != nil {
					log.Fatal(err)
				}
			}
			if rank == 0 {
				fmt.Println(weights)
			}
		})
	}
	workers.Wait()
	// Output: [12]
}

// Two jobs on one card at the same time, each in a goroutine of its own.
func ExampleCard_Configure() {
	ctx := context.Background()
	card, err := driver.Open(ctx, "cpu:jobs=2")
	if err != nil {
		log.Fatal(err)
	}
	defer card.Close()
	sums := make([][]float32, 2)
	var jobs sync.WaitGroup
	for i, ports := range [][]int{{0, 1, 2}, {2, 3}} {
		jobs.Go(func() {
			job, err := card.Configure(ctx, driver.JobConfig{Ports: ports})
			if err != nil {
				log.Fatal(err)
			}
			gradients := [][]float32{{1, 2}, {10, 20}, {100, 200}}[:len(ports)]
			sums[i] = make([]float32, 2)
			if err := job.Reduce(ctx, sums[i], gradients); err != nil {
				log.Fatal(err)
			}
			if err := job.Close(ctx); err != nil {
				log.Fatal(err)
			}
		})
	}
	jobs.Wait()
	fmt.Println(sums)
	// Output: [[111 222] [11 22]]
}

// The error names an absent worker.
func ExampleMissingError() {
	ctx := context.Background()
	card, err := driver.Open(ctx, "cpu:", driver.WithWorkers(3), driver.WithTimeout(10*time.Second))
	if err != nil {
		log.Fatal(err)
	}
	defer card.Close()
	job, err := card.Configure(ctx, driver.JobConfig{})
	if err != nil {
		log.Fatal(err)
	}
	err = job.Member(1).AllReduce(ctx, []float32{1})
	var missing *driver.MissingError
	if errors.As(err, &missing) {
		fmt.Println("missing:", missing.Ranks)
	}
	// Output: missing: [0 2]
}

func ExampleWithProgress() {
	ctx := context.Background()
	card, err := driver.Open(ctx, "cpu:", driver.WithWorkers(1))
	if err != nil {
		log.Fatal(err)
	}
	defer card.Close()
	job, err := card.Configure(ctx, driver.JobConfig{})
	if err != nil {
		log.Fatal(err)
	}
	gradient := make([]float32, 100_000)
	var last int
	err = job.Reduce(ctx, gradient, [][]float32{gradient}, driver.WithProgress(func(done, total int) { last = 100 * done / total }))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(last, "%")
	// Output: 100 %
}

// A program shares its card with readers: with tributary top -card unix:training.sock, or with
// a program that opens it as here.
func ExampleCard_ServeReads() {
	ctx := context.Background()
	card, err := driver.Open(ctx, "cpu:")
	if err != nil {
		log.Fatal(err)
	}
	defer card.Close()
	folder, err := os.MkdirTemp("", "training")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(folder)
	socket := filepath.Join(folder, "training.sock")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		log.Fatal(err)
	}
	defer listener.Close()
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go card.ServeReads(ctx, conn)
		}
	}()

	seen, err := driver.Open(ctx, "unix:"+socket, driver.WithReadOnly())
	if err != nil {
		log.Fatal(err)
	}
	defer seen.Close()
	fmt.Println(seen.Info().Lanes, "lanes")
	// Output: 16 lanes
}
