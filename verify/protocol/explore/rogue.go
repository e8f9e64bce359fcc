package main

// forgery is one packet that a rogue may send at any time.
type forgery struct {
	kind    kind // data, ask, finish
	job     int
	epoch   int // ahead of the card's; modulo config.epochs()
	rank    int
	vid     int // the field
	variant int // of the payload
}

// rogueAlphabet lists all packets that a rogue may send. They are data, asks and finishes for
// every job, rank and VID of the card's epoch. With its own rank the rogue also sends data with a
// second payload, and data of the previous epoch.
func (w *world) rogueAlphabet() []forgery {
	if w.alphabet != nil {
		return w.alphabet
	}
	c := w.config
	own := c.members() - 1
	for job := range c.Jobs {
		for rank := range c.members() {
			w.alphabet = append(w.alphabet, forgery{kind: finish, job: job, rank: rank})
			for vid := range c.Modulus {
				w.alphabet = append(w.alphabet,
					forgery{kind: data, job: job, rank: rank, vid: vid},
					forgery{kind: ask, job: job, rank: rank, vid: vid})
			}
		}
	}
	for vid := range c.Modulus {
		w.alphabet = append(w.alphabet,
			forgery{kind: data, job: c.jobOf(own), rank: own, vid: vid, variant: 1},
			forgery{kind: data, job: c.jobOf(own), rank: own, vid: vid, epoch: c.epochs() - 1})
	}
	return w.alphabet
}

// rogue delivers a forgery to the card at once: a late arrival equals a later send. A job of
// which the rogue is the only member left is excluded; it affects no other member and would make
// the state space endless.
func (w *world) rogue(f forgery) bool {
	own := w.config.members() - 1
	if w.jobs[f.job].members == bit(own) {
		return false
	}
	h := header{kind: f.kind, port: own, job: f.job, epoch: (int(w.jobs[f.job].epoch) + f.epoch) % w.config.epochs(), rank: f.rank, vid: f.vid}
	before := w.state
	switch f.kind {
	case data:
		w.Describe("%s sends data: VID %d, epoch %d, job %d, as worker %d, payload %d", w.name(own), f.vid, h.epoch, f.job, f.rank, f.variant)
		w.takeData(h, func(s *slot) tag {
			// A forged payload belongs to the VID of the slot that it reaches.
			return contribution(own, h.epoch, int(s.vid), f.variant)
		})
	case finish:
		w.Describe("%s sends finish, job %d, as worker %d", w.name(own), f.job, f.rank)
		w.takeFinish(h)
	case ask:
		w.Describe("%s asks: VID %d, job %d, as worker %d", w.name(own), f.vid, f.job, f.rank)
		w.takeAsk(h)
	}
	w.judgeIsolation(own, &before)
	return true
}
