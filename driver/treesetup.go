package driver

// The set-up of a job on all cards of a tree: one number, one epoch, and the addresses between the cards
// (wire/TREES.md, sections 2, 5 and 6).

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"tributary/driver/frame"
	"tributary/driver/wire"
)

// treeTurn is held by the set-up of a tree, before it takes the turns of its cards. Two trees with the
// same cards cannot wait for each other then.
var treeTurn = make(chan struct{}, 1)

// takeTurns takes the turns to set up jobs on all cards. release gives them back.
func (t *Tree) takeTurns(ctx context.Context) (release func(), err error) {
	const what = "set-up of a job"
	root := t.cards[t.root].Card
	if err := root.takeTurn(ctx, treeTurn, what); err != nil {
		return nil, err
	}
	taken := 0
	release = func() {
		for _, c := range t.cards[:taken] {
			<-c.Card.configuring
		}
		<-treeTurn
	}
	for _, c := range t.cards {
		if err := c.Card.takeTurn(ctx, c.Card.configuring, what); err != nil {
			release()
			return nil, err
		}
		taken++
	}
	return release, nil
}

// present returns the current links of all cards. It waits while one is away.
func (t *Tree) present(ctx context.Context) ([]*link, error) {
	links := make([]*link, len(t.cards))
	for i, c := range t.cards {
		var err error
		if links[i], err = c.Card.present(ctx, "set-up of a job"); err != nil {
			return nil, err
		}
	}
	return links, nil
}

// lost reports whether one of the links has ended and its card is not given up.
func (t *Tree) lost(links []*link) bool {
	for i, l := range links {
		if t.cards[i].Card.lost(l) {
			return true
		}
	}
	return false
}

// configure sets up a job with checked parameters.
func (t *Tree) configure(ctx context.Context, whole JobConfig, cfgs []JobConfig) (*Job, error) {
	release, err := t.takeTurns(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	for _, c := range t.cards {
		if c.Card.info.Jobs == 1 {
			c.Card.endJobs(errReplaced)
		}
	}
	for {
		links, err := t.present(ctx)
		if err != nil {
			return nil, err
		}
		j, err := t.configureOn(ctx, links, whole, cfgs)
		if err == nil || !t.lost(links) {
			return j, err
		}
	}
}

// configureOn sets up a job over the links.
func (t *Tree) configureOn(ctx context.Context, links []*link, whole JobConfig, cfgs []JobConfig) (*Job, error) {
	number, err := t.freeNumber(ctx, links, cfgs)
	if err != nil {
		return nil, err
	}
	w := newTreeJob(t, whole)
	for i, c := range t.cards {
		if c.Card.info.Jobs > 1 { // with one number, this set-up replaces a lingering job
			if err := c.Card.dismiss(ctx, links[i]); err != nil {
				return nil, err
			}
		}
		w.parts = append(w.parts, w.newPart(i, cfgs[i], number, 0, c.Card.shortestTrip()))
	}
	epoch, err := w.setUp(ctx, links, nil, whole.FirstVID)
	if err != nil {
		w.withdraw(links, epoch)
		return nil, t.explain(ctx, links, cfgs, err)
	}
	for i, j := range w.parts {
		j.epoch = epoch
		if !t.cards[i].Card.enterJob(links[i], j) {
			err := t.cards[i].Card.whyOver(links[i])
			for _, entered := range w.parts[:i] {
				entered.end(err)
			}
			w.withdraw(links, epoch)
			return nil, err
		}
	}
	for i, c := range t.cards {
		c.Card.warnOfRoom(links[i], cfgs[i])
	}
	if whole.CarryOn > 0 {
		go w.keep()
	}
	return w.root(), nil
}

// withdraw ends the parts that a failed set-up may have left on the cards.
func (w *treeJob) withdraw(links []*link, epoch uint16) {
	w.end(ErrClosed)
	var all sync.WaitGroup
	for i, j := range w.parts {
		all.Go(func() {
			j.card.linger(links[i], j.number, epoch)
			j.card.dismissLate(links[i])
		})
	}
	all.Wait()
}

// freeNumber returns the lowest number without a running job on any card.
func (t *Tree) freeNumber(ctx context.Context, links []*link, cfgs []JobConfig) (uint8, error) {
	for number := 0; ; number++ {
		free := true
		for i, c := range t.cards {
			if number >= c.Card.info.Jobs {
				return 0, c.Card.fullError(ctx, links[i], cfgs[i].Window, nil)
			}
			c.Card.mu.Lock()
			free = free && c.Card.table[number].job == nil
			c.Card.mu.Unlock()
		}
		if free {
			return uint8(number), nil
		}
	}
}

// explain returns the error of a set-up for which a card had no slots.
func (t *Tree) explain(ctx context.Context, links []*link, cfgs []JobConfig, err error) error {
	var refused *RefusedError
	if !errors.As(err, &refused) || refused.Code != wire.CodeNoSlots {
		return err
	}
	i := slices.IndexFunc(t.cards, func(c TreeCard) bool { return c.Card.name == refused.Card })
	return t.cards[i].Card.fullError(ctx, links[i], cfgs[i].Window, err)
}

// setUp sets the parts up on all cards, in one epoch that is later than all that the cards and own have
// had, from chunk first on. It returns the last epoch, also when it fails.
func (w *treeJob) setUp(ctx context.Context, links []*link, own *uint16, first uint32) (epoch uint16, err error) {
	for range mostSetUps {
		if err := w.wire(ctx, links); err != nil {
			return epoch, err
		}
		lasts, err := w.lastEpochs(ctx, links)
		if err != nil {
			return epoch, err
		}
		if epoch, err = w.nextEpoch(lasts, own); err != nil {
			return epoch, err
		}
		same := true
		for i, j := range w.parts {
			if err := j.approach(ctx, links[i], lasts[i], epoch, first); err != nil {
				return epoch, err
			}
			got, err := j.setUp(ctx, links[i], epoch, first)
			if err != nil {
				return epoch, err
			}
			if got != epoch { // a late copy of a write made the card set something else up first
				same = false
				break
			}
		}
		if same {
			return epoch, nil
		}
	}
	root := w.root().card
	return epoch, &failure{at: place{card: root.name}, what: fmt.Sprintf("the tree was set up %d times, but never on all cards in one epoch; check whether another program writes the cards' registers", mostSetUps)}
}

// lastEpochs reads the last epoch of the job's number on each card; nil where there was none. It aborts
// what still runs there.
func (w *treeJob) lastEpochs(ctx context.Context, links []*link) ([]*uint16, error) {
	lasts := make([]*uint16, len(w.parts))
	for i, j := range w.parts {
		var err error
		if lasts[i], err = j.card.abortAny(ctx, links[i], j.number); err != nil {
			return nil, err
		}
	}
	return lasts, nil
}

// nextEpoch returns an epoch that is later than the last ones of all cards, and than own.
func (w *treeJob) nextEpoch(lasts []*uint16, own *uint16) (uint16, error) {
	var had []uint16
	for _, last := range append(slices.Clone(lasts), own) {
		if last != nil {
			had = append(had, *last)
		}
	}
	if len(had) > 0 {
		return epochAfter(had), nil
	}
	c := w.root().card
	var b [2]byte
	if _, err := io.ReadFull(c.opts.random, b[:]); err != nil {
		return 0, &failure{at: place{card: c.name}, what: "no random epoch", err: err}
	}
	return binary.LittleEndian.Uint16(b[:]), nil
}

// epochAfter returns the epoch after the latest of several. Epochs are in a circle: the latest is the one
// with the widest gap after it. If all of them are in half of the circle, it is the latest in serial order.
func epochAfter(had []uint16) uint16 {
	had = slices.Clone(had)
	slices.Sort(had)
	latest, widest := had[len(had)-1], int(had[0])+1<<16-int(had[len(had)-1])
	for i, epoch := range had[:len(had)-1] {
		if gap := int(had[i+1]) - int(epoch); gap > widest {
			latest, widest = epoch, gap
		}
	}
	return latest + 1
}

// farthestEpoch is the most by which a card's next epoch may be later than its last one.
const farthestEpoch = 1<<15 - 1

// approach leads a card to an epoch that it would take for an earlier one: cards with histories of their
// own may have epochs of which none is the latest in serial order. It sets the part up in epochs between,
// and aborts it. No packet has such an epoch.
func (j *Job) approach(ctx context.Context, l *link, last *uint16, epoch uint16, first uint32) error {
	if last == nil {
		return nil
	}
	for at := *last; int16(epoch-at) <= 0; {
		var err error
		if at, err = j.setUp(ctx, l, at+min(farthestEpoch, epoch-at-1), first); err != nil {
			return err
		}
		if _, err := j.card.writeOn(ctx, l, wire.RegJobAbort, jobName(j.number, at)); err != nil {
			return err
		}
	}
	return nil
}

// wire reads the cards' own addresses, and chooses the upward UDP ports.
func (w *treeJob) wire(ctx context.Context, links []*link) error {
	t := w.tree
	if len(t.cards) == 1 {
		return nil
	}
	own := make([]wire.Address, len(t.cards))
	for i, c := range t.cards {
		got, err := c.Card.accessOn(ctx, links[i], readHeader(wire.RegCardAddress), readHeader(wire.RegCardMAC))
		if err != nil {
			return err
		}
		own[i] = wire.Address{Station: got[0], MAC: got[1]}
		if uint32(own[i].Station) == 0 {
			return &failure{at: place{card: c.Card.name}, what: "it has no IPv4 address of its own (CARD_ADDRESS), so other cards cannot reach it; give it one, such as with -listen udp:ADDRESS"}
		}
		w.parts[i].branch.members = make([]wire.Address, w.parts[i].cfg.Workers)
	}
	taken := map[uint64]bool{} // addresses with UDP ports
	for i := range t.cards {
		taken[own[i].Station] = true
	}
	for i, c := range t.cards {
		if c.Parent < 0 {
			continue
		}
		port, err := w.parts[i].upwardPort(ctx, links[i], own[i], taken)
		if err != nil {
			return err
		}
		b, above, rank := w.parts[i].branch, w.parts[c.Parent].branch, t.rankAtParent(i)
		b.parent, b.above = wire.Upward(uint8(rank), port), through(own[c.Parent], c.Up)
		above.members[rank] = through(withPort(own[i], port), c.Down)
	}
	return nil
}

// Bits of an address in the registers.
const (
	addressPortShift = 32
	macPortShift     = 48
)

// through returns an address behind an Ethernet port of the sender.
func through(a wire.Address, ethernet int) wire.Address {
	a.MAC = a.MAC&(1<<macPortShift-1) | uint64(ethernet)<<macPortShift
	return a
}

// withPort returns an address with another UDP port.
func withPort(a wire.Address, port uint16) wire.Address {
	a.Station = uint64(uint32(a.Station)) | uint64(port)<<addressPortShift
	return a
}

// Upward UDP ports come from this range, which the ephemeral ports of Linux (32768 and above) do not touch.
const (
	firstUpward = 10000
	manyUpward  = 22000
)

// upwardPort returns an upward UDP port that the card has not used within the lifetime of packets. A card
// uses the ports of the range in turn, whoever owns it: JOB_UP shows the last one for each job number. The
// first is random.
func (j *Job) upwardPort(ctx context.Context, l *link, own wire.Address, taken map[uint64]bool) (uint16, error) {
	c := j.card
	latest, known := c.upward, c.upward != 0
	for number := range c.info.Jobs {
		up, err := c.readOn(ctx, l, wire.JobAddr(wire.RegJobUp, number))
		if err != nil {
			return 0, err
		}
		port := uint16(up >> wire.ParentPortShift & wire.ParentPortBits)
		if up&wire.ParentTree == 0 || port < firstUpward || port >= firstUpward+manyUpward {
			continue
		}
		ahead := (int(port) - int(latest) + manyUpward) % manyUpward
		if !known || ahead > 0 && ahead < manyUpward/2 {
			latest, known = port, true
		}
	}
	if !known {
		var b [4]byte
		if _, err := io.ReadFull(c.opts.random, b[:]); err != nil {
			return 0, &failure{at: place{card: c.name}, what: "no random UDP port", err: err}
		}
		latest = firstUpward + uint16(binary.LittleEndian.Uint32(b[:])%manyUpward)
	}
	for {
		latest = firstUpward + (latest-firstUpward+1)%manyUpward
		if at := withPort(own, latest); !taken[at.Station] {
			taken[at.Station], c.upward = true, latest
			return latest, nil
		}
	}
}

// stagedTree returns the writes that stage what a card with an up port has of a tree. An ordinary job has
// nothing of it, whatever a job before has left there.
func (j *Job) stagedTree() (writes []frame.Header) {
	if !j.card.info.Parent {
		return nil
	}
	b := j.branch
	if b == nil || len(b.of.parts) == 1 {
		writes = append(writes, writeHeader(wire.RegJobParent, 0))
		for _, port := range j.cfg.Ports {
			writes = append(writes, writeHeader(wire.RanksAddr(port), 0))
		}
		if b != nil { // global ranks may differ from the member's own
			for rank, port := range j.cfg.Ports {
				writes[1+rank] = writeHeader(wire.RanksAddr(port), b.rank[rank])
			}
		}
		return writes
	}
	writes = append(writes,
		writeHeader(wire.RegJobParent, b.parent), writeHeader(wire.RegJobRepeat, repeatCycles),
		writeHeader(wire.RegTreeRanks, b.all))
	if b.parent != 0 {
		writes = append(writes, writeHeader(wire.RegParentAddress, b.above.Station), writeHeader(wire.RegParentMAC, b.above.MAC))
	}
	for rank, port := range j.cfg.Ports {
		writes = append(writes, writeHeader(wire.RanksAddr(port), b.rank[rank]))
	}
	return writes
}
