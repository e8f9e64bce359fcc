package reduction_test

import (
	"context"
	"fmt"
	"log"

	"tributary/driver"
	"tributary/driver/reduction"
)

// Two workers' arrays in memory are summed on the model of a card.
func ExampleRun() {
	w0, w1 := float32s([]int{2}, 1, 2), float32s([]int{2}, 10, 20)
	done, err := reduction.Run(context.Background(), "cpu:",
		[]reduction.Arrays{reduction.Array(w0), reduction.Array(w1)}, reduction.Options{Op: reduction.Mean, Verify: true})
	if err != nil {
		log.Fatal(err)
	}
	sum := done.Sum.Tensors[0]
	fmt.Println(sum.Type, sum.Shape, done.Report.Verified)
	fmt.Printf("% x\n", sum.Data) // 5.5, 11
	// Output:
	// float32 [2] true
	// 00 00 b0 40 00 00 30 41
}

// Files are summed on a card that stays open, as in tributary reduce.
func ExampleReduce() {
	ctx := context.Background()
	card, err := driver.Open(ctx, "unix:card.sock")
	if err != nil {
		log.Fatal(err)
	}
	defer card.Close()
	files, err := reduction.ReadFiles(ctx, []string{"w0.npy", "w1.npy"})
	if err != nil {
		log.Fatal(err)
	}
	done, err := reduction.Reduce(ctx, card, files, reduction.Options{
		OnOutage: func(o driver.Outage) { log.Print("the card disconnected, or is back: ", o.Cause) },
	})
	if err != nil {
		log.Fatal(err)
	}
	for _, w := range done.Warnings {
		log.Print(w)
	}
	if err := reduction.WriteFile(ctx, "sum.npy", done.Sum); err != nil {
		log.Fatal(err)
	}
}
