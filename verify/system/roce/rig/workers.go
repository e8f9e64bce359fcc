package rig

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
)

// Outcome is what a worker prints.
type Outcome struct {
	Rank     int     `json:"rank"`
	Elements int     `json:"elements"`
	Arrays   int     `json:"arrays"`
	Wrong    int     `json:"wrong"`
	Seconds  float64 `json:"seconds"` // of its reductions
	Error    string  `json:"error"`
}

// WorkerName is the name of the worker's program in a host.
const WorkerName = "tributary-roce-worker"

// unheard is the status of a worker that has not reached its coordinator.
const unheard = 2

// Work runs a worker at each of the first ranks hosts, with the flags for all and those for its rank, and
// coordinates them, with late ranks as in Coordinate. It returns their outcomes, and the error of the first that failed.
func (h *Hosts) Work(ranks int, flags string, ofRank map[int]string, register func([]End) error, late map[int]<-chan struct{}) ([]Outcome, error) {
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	outcomes, errs := make([]Outcome, ranks), make([]error, ranks)
	var running sync.WaitGroup
	for rank := range ranks {
		running.Go(func() {
			line := fmt.Sprintf("%s -rank %d -ranks %d -channel %s %s %s", WorkerName, rank, ranks, Channel, flags, ofRank[rank])
			if outcomes[rank], errs[rank] = h.work(rank, line); errs[rank] != nil {
				cancel() // the coordinator would wait for it
			}
		})
	}
	err := Coordinate(ctx, h.Channels[:ranks], register, late)
	running.Wait()
	return outcomes, errors.Join(append(errs, err)...)
}

// work runs a worker. A reduction that failed is in its outcome, and is no error.
func (h *Hosts) work(host int, line string) (o Outcome, err error) {
	r, err := h.Guests[host].Run(line, Patience)
	if err != nil {
		return o, err
	}
	if r.Status == unheard {
		return o, fmt.Errorf("%s: %s", line, r.Out)
	}
	if err := json.Unmarshal([]byte(strings.TrimSpace(r.Out)), &o); err != nil {
		return o, fmt.Errorf("%s: status %d: %s", line, r.Status, r.Out)
	}
	return o, nil
}
