package driver

import "tributary/driver/wire"

// congestionGain is g of DCTCP: the weight of a round in alpha.
const congestionGain = 1.0 / 16

// congestion is the congestion window of a flow on a card that is on a network (NETWORK.md, section 8).
// It follows DCTCP (Alizadeh et al., SIGCOMM 2010; RFC 8257): a round with marks cuts the window by
// alpha/2, where alpha is the moving average of the share of marked results. Results are the
// acknowledgements. It neither sends nor keeps chunks: the flow does that.
type congestion struct {
	most  float64 // the job's window, in chunks
	fixed bool    // the window stays there
	size  float64 // 1 to most
	alpha float64 // 0 to 1

	begun           bool   // round is set
	round           uint32 // VID whose result, or that of a later chunk, ends the round
	results, marked int    // of the round

	reduced   bool   // chunks before recovered may be in flight:
	recovered uint32 // marks and losses of chunks before this VID reduce the window no further

	stats   CongestionStats
	windows float64 // sum of the windows at all results
}

// CongestionStats describes the congestion windows of a job's members in this process. They have one
// window for each flow of calls: that of Reduce, or each member's.
type CongestionStats struct {
	Results    uint64  // results taken
	Marked     uint64  // of them, results with a mark: on the way to the card, or on the way back
	Cuts       uint64  // windows cut for marks
	Halvings   uint64  // windows halved for losses
	MeanWindow float64 // in chunks, the mean over all results; 0 without results
}

// newCongestion returns a window that is wide open: a network without marks is as fast as with a fixed
// window.
func newCongestion(window int, fixed bool) *congestion {
	return &congestion{most: float64(window), fixed: fixed, size: float64(window), alpha: 1}
}

// allows reports whether another chunk may be sent while that many have no result.
func (c *congestion) allows(inFlight int) bool { return inFlight < int(c.size) }

// rest begins a new round with the next result. Nothing is in flight.
func (c *congestion) rest() { c.begun, c.reduced = false, false }

// take takes the first result of a chunk. next is the VID of the first chunk that is not sent.
func (c *congestion) take(vid, next uint32, marked bool) {
	c.stats.Results++
	c.results++
	if marked {
		c.stats.Marked++
		c.marked++
	}
	if !c.begun || int32(vid-c.round) >= 0 {
		c.alpha += congestionGain * (float64(c.marked)/float64(c.results) - c.alpha)
		c.begun, c.round, c.results, c.marked = true, next, 0, 0
	}
	switch {
	case c.fixed:
	case !marked:
		c.size = min(c.size+1/c.size, c.most)
	case c.mayReduce(vid):
		c.reduce(1-c.alpha/2, next)
		c.stats.Cuts++
	}
	c.windows += c.size
	if c.reduced && int32(vid-c.recovered) >= int32(c.most) { // W chunks later, all before have results
		c.reduced = false
	}
}

// lose takes the loss of a chunk, or of its result.
func (c *congestion) lose(vid, next uint32) {
	if !c.fixed && c.mayReduce(vid) {
		c.reduce(0.5, next)
		c.stats.Halvings++
	}
}

// mayReduce reports whether a mark or a loss of that chunk is news: it was sent after the last reduction.
func (c *congestion) mayReduce(vid uint32) bool {
	return !c.reduced || int32(vid-c.recovered) >= 0
}

func (c *congestion) reduce(factor float64, next uint32) {
	c.size = max(1, c.size*factor)
	c.reduced, c.recovered = true, next
}

// isMarked reports whether the result in a packet has a mark: that of its contributions, or that of its
// own way, which the reader of datagrams has merged into the flags.
func isMarked(flags uint8) bool { return wire.ECN(flags&wire.FlagECN) == wire.CE }

// Congestion returns what the congestion windows of the members in this process did, on a tree those at all
// cards. It is zero for cards that are not on a network. With WithFixedWindow it counts results and marks.
func (j *Job) Congestion() CongestionStats {
	var all CongestionStats
	for _, part := range j.onCards() {
		part.addCongestion(&all)
	}
	if all.Results > 0 {
		all.MeanWindow /= float64(all.Results)
	}
	return all
}

// addCongestion adds the figures of the job's members on its card. MeanWindow gets the sum of the windows
// at all results.
func (j *Job) addCongestion(all *CongestionStats) {
	j.card.mu.Lock()
	defer j.card.mu.Unlock()
	add := func(c *congestion) {
		if c == nil { // the card is on no network
			return
		}
		all.Results += c.stats.Results
		all.Marked += c.stats.Marked
		all.Cuts += c.stats.Cuts
		all.Halvings += c.stats.Halvings
		all.MeanWindow += c.windows
	}
	add(j.whole.congestion)
	for _, m := range j.members {
		add(m.own.congestion)
	}
}
