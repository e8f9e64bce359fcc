package driver

// A tree of cards that a daemon offers to other processes as one card (daemon/SPEC.md, section 13).

import (
	"context"
	"errors"
	"math/bits"
	"sync"

	"tributary/driver/daemon/protocol"
	"tributary/driver/wire"
)

// SharedTree is a tree of cards in the place of one card, which a daemon offers to other processes. It owns
// its cards.
type SharedTree struct {
	tree  *Tree
	info  Info
	ident map[uint32]uint64 // registers that describe the whole tree
	done  chan struct{}     // closed when a card has gone for good
}

// ShareTree is NewTree for a tree that a daemon offers as one card. Info and errors call it name. Its ranks
// are those from 0 without a gap.
//
// Errors: InputError, which names the card.
func ShareTree(name string, cards []TreeCard) (*SharedTree, error) {
	t, err := NewTree(cards)
	if err != nil {
		return nil, err
	}
	if t.all&(t.all+1) != 0 {
		return nil, wrongTree("its workers have the ranks %v; a tree that is shared has those from 0 without a gap", t.Ranks())
	}
	s := &SharedTree{tree: t, info: t.asCard(name), done: make(chan struct{})}
	s.ident = s.info.ident()
	s.info.ConfigHash = s.ident[wire.RegConfigHash]
	gone := sync.OnceFunc(func() { close(s.done) })
	for _, c := range t.cards {
		go func() {
			<-c.Card.Done()
			gone()
		}()
	}
	return s, nil
}

// asCard describes the tree as a card, without CONFIG_HASH.
func (t *Tree) asCard(name string) Info {
	info := t.cards[t.root].Card.info
	info.Name, info.Ports = name, bits.OnesCount64(t.all)
	info.Shell, info.Parent, info.Link, info.Packet = wire.ShellNone, false, 0, 0
	for _, c := range t.cards {
		info.Lanes = max(info.Lanes, c.Card.info.Lanes) // powers of two
		info.Window = min(info.Window, c.Card.info.Window)
		info.Jobs = min(info.Jobs, c.Card.info.Jobs)
	}
	var most JobConfig
	t.defaults(&most)
	info.Chunk = most.Chunk
	info.Chunk = info.chunkInFrames()
	return info
}

// ident returns what a host reads to identify a card.
func (i Info) ident() map[uint32]uint64 {
	saturate := uint64(0)
	if i.Saturate {
		saturate = 1 << sumSaturateShift
	}
	values := map[uint32]uint64{
		wire.RegMagic:   wire.Magic,
		wire.RegVersion: uint64(i.Version),
		wire.RegLanes:   uint64(i.Lanes),
		wire.RegPorts:   uint64(i.Ports),
		wire.RegFormat:  uint64(i.Format) | uint64(i.Result)<<formatResultShift,
		wire.RegSum:     uint64(i.Sum) | saturate,
		wire.RegShell:   uint64(i.Shell),
		wire.RegChunk:   uint64(i.Chunk),
		wire.RegWindow:  uint64(i.Window),
		wire.RegJobs:    uint64(i.Jobs),
		wire.RegLink:    uint64(i.Link),
		wire.RegLatency: uint64(i.Latency),
	}
	values[wire.RegConfigHash] = wire.ConfigHash(func(addr uint32) uint64 { return values[addr] })
	return values
}

// Info describes the tree as clients find it.
func (s *SharedTree) Info() Info { return s.info }

// Cards returns the cards, in the order of ShareTree.
func (s *SharedTree) Cards() []TreeCard { return s.tree.Cards() }

// Describe returns the cards as a daemon describes them to its clients; nil for one card alone, whose sum is
// flat.
func (s *SharedTree) Describe() (cards []*protocol.TreeCard) {
	if len(s.tree.cards) == 1 {
		return nil
	}
	for _, c := range s.tree.cards {
		d := &protocol.TreeCard{Parent: int32(c.Parent), Ports: uint32(c.Card.info.Ports)}
		for _, rank := range c.Ranks {
			d.Ranks = append(d.Ranks, uint32(rank))
		}
		cards = append(cards, d)
	}
	return cards
}

// Complete fills in the defaults of a job's parameters and checks them against all cards. The ports are the
// ranks of the workers.
func (s *SharedTree) Complete(cfg JobConfig) (JobConfig, error) {
	ports := cfg.Ports
	cfg.Ports = nil
	_, cfg, err := s.tree.complete(cfg)
	if err != nil {
		return cfg, err
	}
	cfg.Ports = ports
	return s.info.Complete(cfg)
}

// Configure sets up a job on all cards, as Tree.Configure does.
func (s *SharedTree) Configure(ctx context.Context, cfg JobConfig) (*Job, error) {
	cfg, err := s.Complete(cfg)
	if err != nil {
		return nil, err
	}
	cfg.Ports = nil // the tree places its workers itself
	return s.tree.Configure(ctx, cfg)
}

// TakesArrays reports that clients pass arrays: the frames are between this process and the cards.
func (s *SharedTree) TakesArrays() bool { return true }

// Network returns no name: clients reach no card.
func (s *SharedTree) Network() string { return "" }

// Away reports whether a card has gone and the driver looks for it.
func (s *SharedTree) Away() bool { return len(s.AwayCards()) > 0 }

// AwayCards returns the names of the cards that have gone and for which the driver looks.
func (s *SharedTree) AwayCards() (names []string) {
	for _, c := range s.tree.cards {
		if c.Card.Away() {
			names = append(names, c.Card.name)
		}
	}
	return names
}

// Done returns a channel that is closed when a card has gone for good: the tree cannot be used then.
func (s *SharedTree) Done() <-chan struct{} { return s.done }

// Err returns why a card has gone for good, or nil.
func (s *SharedTree) Err() error {
	for _, c := range s.tree.cards {
		if err := c.Card.Err(); err != nil {
			return err
		}
	}
	return nil
}

// Close closes all cards.
func (s *SharedTree) Close() error { return s.onAll((*Card).Close) }

// Reset resets all cards, which ends the tree's jobs.
func (s *SharedTree) Reset(ctx context.Context) error {
	return s.onAll(func(c *Card) error { return c.Reset(ctx) })
}

// onAll does something with all cards at once.
func (s *SharedTree) onAll(do func(*Card) error) error {
	var all sync.WaitGroup
	errs := make([]error, len(s.tree.cards))
	for i, c := range s.tree.cards {
		all.Go(func() { errs[i] = do(c.Card) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// Responds returns nil when all cards respond.
func (s *SharedTree) Responds(ctx context.Context) error {
	return s.onAll(func(c *Card) error {
		_, err := c.ReadRegister(ctx, wire.RegMagic)
		return err
	})
}

// ReadRegister reads a register of the whole tree, where there is one, or of the root.
func (s *SharedTree) ReadRegister(ctx context.Context, addr uint32) (uint64, error) {
	if value, ok := s.ident[addr]; ok {
		return value, nil
	}
	if number, rank, bucket, ok := wire.SplitLagAddr(addr); ok && rank < len(s.tree.workers) {
		at := s.tree.workers[rank]
		return s.tree.cards[at.card].Card.ReadRegister(ctx, wire.LagAddr(number, at.rank, bucket))
	}
	switch of0, number := wire.SplitJobAddr(addr); of0 {
	case wire.RegJobMembers:
		return s.tree.all, nil
	case wire.RegJobFinished:
		return 0, nil // all workers finish together
	case wire.RegJobNonfiniteIn, wire.RegJobFirstIn:
		return s.exception(ctx, number, wire.RegJobNonfiniteIn, wire.RegJobFirstIn, of0)
	case wire.RegJobOverflow, wire.RegJobFirstOverflow:
		return s.exception(ctx, number, wire.RegJobOverflow, wire.RegJobFirstOverflow, of0)
	}
	return s.tree.cards[s.tree.root].Card.ReadRegister(ctx, addr)
}

// exception returns a register of a kind of exceptions, of which all cards count their own: the count, or
// the place of the first.
func (s *SharedTree) exception(ctx context.Context, number int, count, first, wanted uint32) (uint64, error) {
	sum, err := s.tree.addUp(func(i int) (Exception, error) {
		x, err := readException(number, count, first, func(addr uint32) (uint64, error) {
			return s.tree.cards[i].Card.ReadRegister(ctx, addr)
		})
		if first == wire.RegJobFirstIn {
			x = s.tree.contributed(i, x)
		}
		return x, err
	})
	switch {
	case err != nil || sum.Count == 0:
		return 0, err
	case wanted == count:
		return uint64(sum.Count), nil
	}
	return uint64(sum.VID) | uint64(sum.Rank)<<firstRankShift | firstValid, nil
}
