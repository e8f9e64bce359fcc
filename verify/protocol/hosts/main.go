package main

import (
	"fmt"
	"os"
	"time"
)

func main() {
	for _, c := range configs {
		if len(os.Args) > 1 && os.Args[1] != c.name {
			continue
		}
		t := time.Now()
		found := explore(c, 0, "")
		fmt.Println(c.name, found.states, time.Since(t))
		if found.broken != "" {
			fmt.Print(counterexample(c, weakening{}, found))
		}
	}
}
