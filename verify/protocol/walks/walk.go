// Package walks makes cards take the random walks of the protocol explorer
// (verify/protocol/explore), packet by packet. It compares every packet that they send,
// and every register that shows the effect of a packet. The explorer proves the rules;
// this package checks the gateware and the model against them, with real VIDs.
//
// The explorer prints a walk as lines of JSON. The two programs share no code.
package walks

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strconv"
)

// Walk is what the explorer prints: the jobs, all of one shape, and what happens.
type Walk struct {
	Seed     uint64   `json:"Walk"`
	Members  []uint64 // of each job: its ports
	Window   int      // chunks
	Deadline int      // clock cycles; 0: none
	Partial  bool     // sums, at deadlines
	Settled  int      // clock cycles in which all that an event leads to happens
	Events   []Event  `json:"-"`
}

// Event is something that happens, and what a card then does. VIDs and epochs
// are as they travel.
type Event struct {
	Do      string // commit, abort, data, ask, finish, together, reset, deadline, end
	At      int    // clock cycles since the walk began
	Port    int    // that the packet comes by
	Job     int
	Epoch   uint16
	Rank    uint8
	VID     uint32
	Tag     Tag      // data: what its payload is
	Says    []string // the explorer, of what the card does
	Answer  string   // a code's name, or what else becomes of the packet
	Sent    []Sent   // by the card, for one receiver each
	Jobs    []JobState
	Packets []Event        // together: what is sent at once
	Counts  map[string]int // end: of the card's counters, since the last reset
}

// Sent is a packet that the card sends.
type Sent struct {
	Kind  string // status, result, replay
	Job   int
	Epoch uint16
	Rank  uint8
	Code  string // status
	VID   uint32
	Mask  uint64
	Tags  []Tag // result, replay: what was added up
}

// Tag is a contribution: whose it is, and a number that no other one of this
// member has.
type Tag struct {
	From   int
	Number uint16
}

// JobState is what the registers of a job show.
type JobState struct {
	Up                bool
	Epoch             uint16
	Finished, Evicted uint64 // ranks
}

// TakeWalk has the program of verify/protocol/explore take the walk of a seed, with a rule
// left out unless weakening is empty.
func TakeWalk(ctx context.Context, explore string, seed uint64, weakening string) (*Walk, error) {
	cmd := exec.CommandContext(ctx, explore, "-walk", strconv.FormatUint(seed, 10), "-weaken", weakening)
	var said bytes.Buffer
	cmd.Stderr = &said
	text, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %s", cmd, err, &said)
	}
	lines := json.NewDecoder(bytes.NewReader(text))
	w := &Walk{}
	if err := lines.Decode(w); err != nil {
		return nil, err
	}
	for {
		var e Event
		if err := lines.Decode(&e); errors.Is(err, io.EOF) {
			return w, nil
		} else if err != nil {
			return nil, err
		}
		w.Events = append(w.Events, e)
	}
}
