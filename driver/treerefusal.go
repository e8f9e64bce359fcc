package driver

// What a card of a tree reports of its parent when a call has waited too long (wire/TREES.md, section 4,
// statuses): a refusal there ends nothing by itself, so the calls below wait.

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"tributary/driver/wire"
)

// UpRefusal is a card's report that its parent in a tree refused its sum, or its finish.
type UpRefusal struct {
	Card, Parent string
	VID          uint32 // the chunk
	Code         wire.Code
}

// upRefusals asks the cards of a job's tree for the last refusals of their parents, each card once. It
// leaves out the refusals that repeats cause, and cards that do not reply at once. Other jobs have none.
func (j *Job) upRefusals() (all []UpRefusal) {
	w := j.tree()
	if w == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	values := make([]uint64, len(w.parts))
	var reads sync.WaitGroup
	for i, part := range w.parts {
		if w.tree.cards[i].Parent >= 0 {
			reads.Go(func() {
				values[i], _ = part.card.readOn(ctx, part.card.currentLink(), wire.JobAddr(wire.RegJobUpRefusal, int(part.number)))
			})
		}
	}
	reads.Wait()
	for i, value := range values {
		if code, vid := wire.SplitUpRefusal(value); value != 0 && !passes(code) {
			all = append(all, UpRefusal{w.tree.name(i), w.tree.name(w.tree.cards[i].Parent), vid, code})
		}
	}
	return all
}

// upText returns the sentence about refusals, and the remedy. It is empty without refusals.
func upText(all []UpRefusal) string {
	var s strings.Builder
	for _, r := range all {
		fmt.Fprintf(&s, "; card %s: its parent %s refused chunk %d with %s", r.Card, r.Parent, r.VID, r.Code)
	}
	if len(all) > 0 {
		s.WriteString("; check whether another program writes the cards' registers")
	}
	return s.String()
}
