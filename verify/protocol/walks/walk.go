// Package walks sends the random walks of the protocol explorer (verify/protocol/explore) to
// cards, packet by packet. It compares every packet that they send, and every register that shows
// the effect of a packet. The explorer checks the rules; this package checks the gateware and the
// model against them, with 32-bit VIDs.
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

// Walk is a walk as the explorer prints it. All its jobs have one shape.
type Walk struct {
	Seed     uint64   `json:"Walk"`
	Members  []uint64 // of each job: the set of its ports
	Window   int      // chunks
	Deadline int      // clock cycles; 0: none
	Partial  bool     // sums, at deadlines
	Settled  int      // clock cycles within which all effects of an event happen
	Events   []Event  `json:"-"`
}

// Event is one event and the card's reaction. VIDs and epochs have the values that packets carry.
type Event struct {
	Do      string // commit, abort, data, ask, finish, together, reset, deadline, end
	At      int    // clock cycles since the walk began
	Port    int    // on which the packet arrives
	Job     int
	Epoch   uint16
	Rank    uint8
	VID     uint32
	Tag     Tag      // data: the contribution
	Says    []string // the explorer's description of the reaction
	Answer  string   // name of a code, or of another outcome
	Sent    []Sent   // by the card, for one receiver each
	Jobs    []JobState
	Packets []Event        // together: the packets that arrive at once
	Counts  map[string]int // end: the card's counters since the last reset
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
	Tags  []Tag // result, replay: the summed contributions
}

// Tag is a contribution: its member, and a number unique among that member's contributions.
type Tag struct {
	From   int
	Number uint16
}

// JobState is the state of a job in its registers.
type JobState struct {
	Up                bool
	Epoch             uint16
	Finished, Evicted uint64 // ranks
}

// TakeWalk runs the explorer and returns the walk of a seed. weakening names a rule to leave out;
// it may be empty.
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
