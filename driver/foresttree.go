package driver

// What a forest needs of a card, of a tree of cards, and of the jobs on both.

import (
	"cmp"
	"context"
)

func (c *Card) setUpTree(ctx context.Context, cfg JobConfig) (*Job, error) {
	return c.Configure(ctx, cfg)
}

func (c *Card) completeJob(cfg JobConfig) (JobConfig, error) { return c.info.Complete(cfg) }

func (c *Card) allCards() []*Card { return []*Card{c} }

func (c *Card) treeRanks() uint64 { return 0 }

// Info describes the tree as if it was one card. It is the root's, but Ports is the number of workers. Lanes,
// Chunk, Window, Jobs and Packet are those that all cards take.
func (t *Tree) Info() Info {
	info := t.cards[t.root].Card.info
	all := t.infos()
	info.Ports, info.Chunk = len(t.Ranks()), commonChunk(all)
	for _, other := range all {
		info.Lanes = max(info.Lanes, other.Lanes) // they are powers of two
		info.Window, info.Jobs = min(info.Window, other.Window), min(info.Jobs, other.Jobs)
		if other.Packet != 0 && (info.Packet == 0 || other.Packet < info.Packet) {
			info.Packet = other.Packet
		}
	}
	return info
}

func (t *Tree) setUpTree(ctx context.Context, cfg JobConfig) (*Job, error) {
	cfg.Ports = nil // of the forest's single cards
	return t.Configure(ctx, cfg)
}

func (t *Tree) completeJob(cfg JobConfig) (JobConfig, error) {
	_, whole, err := t.complete(cfg)
	return whole, err
}

func (t *Tree) allCards() []*Card {
	cards := []*Card{t.cards[t.root].Card}
	for i, c := range t.cards {
		if i != t.root {
			cards = append(cards, c.Card)
		}
	}
	return cards
}

func (t *Tree) treeRanks() uint64 { return t.all }

// wholes returns the flows of all members.
func (j *Job) wholes() []*flow {
	w := j.tree()
	if w == nil {
		return []*flow{j.whole}
	}
	var all []*flow
	for _, part := range w.manned() {
		all = append(all, part.whole)
	}
	return all
}

// onCards returns the job's parts on all cards: itself, if it is on one card.
func (j *Job) onCards() []*Job {
	if w := j.tree(); w != nil {
		return w.parts
	}
	return []*Job{j}
}

// endHere ends the job because of err, on this host but on no card.
func (j *Job) endHere(err error) {
	if w := j.tree(); w != nil {
		w.endHere(err)
		return
	}
	j.end(err)
}

// drop makes all cards drop the job, which has ended on this host.
func (j *Job) drop(ctx context.Context) error {
	if w := j.tree(); w != nil {
		return w.abort(ctx)
	}
	return j.abortOnCard(ctx)
}

// over reports whether the job has ended on any card, and why. On the other cards it ends soon.
func (j *Job) over() (ended bool, err error) {
	for _, part := range j.onCards() {
		part.card.mu.Lock()
		ended, err = ended || part.ended, cmp.Or(err, part.err)
		part.card.mu.Unlock()
	}
	return ended, err
}
