package sim

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// rate is that of every link here, so a byte takes 800 ps.
const rate = 10e9

var card = CardConfig{Latency: 400 * Nanosecond, Chunk: 1600 * Nanosecond, Repeat: 100 * Microsecond}

func quiet(racks, spines, workers int) Clos {
	return Clos{
		Racks: racks, Spines: spines, Workers: workers,
		Host: LinkConfig{Rate: rate, Delay: 5 * Microsecond}, Core: LinkConfig{Rate: rate, Delay: Microsecond},
		LeafCard: card, SpineCard: card,
	}
}

func reduction(trees int, roots Placement, window int) JobConfig {
	return JobConfig{
		Trees: trees, Roots: roots, Window: window, Tree: WindowConfig{First: float64(window)}, Payload: 4096, Bytes: 4096 * 1000,
		Compute: Millisecond, Timeout: Millisecond,
	}
}

// reduce runs one iteration and returns its time.
func reduce(t *testing.T, c Clos, j JobConfig, iterations int) (Time, *Job) {
	t.Helper()
	net := NewNetwork(c)
	job := NewJob(net, j)
	job.Start()
	run(t, net.Engine, 15*Millisecond)
	require.GreaterOrEqual(t, len(job.Ends), iterations)
	if iterations == 1 {
		return job.Ends[0], job
	}
	return job.Ends[iterations-1] - job.Ends[iterations-2] - j.Compute, job
}

// treeLatency is the time of a chunk through leaf, spine and leaf.
func treeLatency() Time {
	up, down := Time((4096+dataOver)*800), Time((4096+resOver)*800)
	return 2*up + 2*down + 2*(5*Microsecond+Microsecond) + 3*card.Latency
}

// TestTreeTime: without other traffic, an array takes its sending and one chunk's way through the
// tree. With a window of less than a round trip, it takes a round trip for each window.
func TestTreeTime(t *testing.T) {
	const chunks = 1000
	result := Time((4096 + resOver) * 800) // the longer packet, and so the slower way
	for _, trees := range []int{1, 2, 4} {
		got, _ := reduce(t, quiet(4, 4, 4), reduction(trees, AtSpines, 64), 1)
		assert.InEpsilon(t, (treeLatency() + (chunks-1)*result).Seconds(), got.Seconds(), tolerance, "%d trees", trees)
	}
	got, _ := reduce(t, quiet(4, 4, 4), reduction(1, AtSpines, 4), 1)
	assert.InEpsilon(t, (chunks / 4 * treeLatency()).Seconds(), got.Seconds(), tolerance, "a window of 4")
	narrow := reduction(2, AtSpines, 64)
	narrow.Tree.First = 2
	got, _ = reduce(t, quiet(4, 4, 4), narrow, 1)
	assert.InEpsilon(t, (chunks / 4 * treeLatency()).Seconds(), got.Seconds(), tolerance, "two trees with windows of 2")

	got, _ = reduce(t, quiet(1, 0, 8), reduction(1, AtSpines, 64), 1)
	one := Time((4096+dataOver)*800) + result + 10*Microsecond + card.Latency
	assert.InEpsilon(t, (one + (chunks-1)*result).Seconds(), got.Seconds(), tolerance, "one rack")

	slow := quiet(4, 4, 4)
	slow.LeafCard.Chunk = 4 * Microsecond // own sums and final sums share the lanes of a leaf
	got, _ = reduce(t, slow, reduction(1, AtSpines, 64), 1)
	assert.InEpsilon(t, (2 * chunks * slow.LeafCard.Chunk).Seconds(), got.Seconds(), tolerance, "slow lanes")
}

// TestChunkTime: a single chunk takes the way through the tree, to the picosecond.
func TestChunkTime(t *testing.T) {
	j := reduction(1, AtSpines, 64)
	j.Bytes = 4096
	got, _ := reduce(t, quiet(4, 4, 4), j, 1)
	assert.Equal(t, treeLatency(), got)
	got, _ = reduce(t, quiet(4, 4, 4), j, 2)
	assert.Equal(t, treeLatency(), got, "again, after the computation")
	// To a root at a leaf and back, a chunk crosses the spine twice.
	j.Roots = AtLeaf
	got, _ = reduce(t, quiet(2, 1, 4), j, 1)
	core := Time((4096+dataOver)*800) + Time((4096+resOver)*800) + 2*Microsecond
	assert.Equal(t, treeLatency()+core, got)
}

// TestRingTime: in one rack, a ring of N takes 2(N-1)(M/(N·b) + α).
func TestRingTime(t *testing.T) {
	for _, n := range []int{2, 4, 8} {
		const bytes = 8 * 100 * mss
		net := NewNetwork(quiet(1, 0, n))
		r := NewRing(net, RingConfig{TCP: TCPConfig{Window: WindowConfig{First: 1 << 20}, Timeout: Second}, Bytes: bytes, Compute: Millisecond})
		r.Start()
		run(t, net.Engine, 8*Millisecond)
		require.NotEmpty(t, r.Ends)
		sending := float64(bytes) / float64(n) * whole / mss * 8 / rate
		latency := (10 * Microsecond).Seconds() + whole*8/rate // two links, one of them after the last byte
		assert.InEpsilon(t, 2*float64(n-1)*(sending+latency), r.Ends[0].Seconds(), tolerance, "%d workers", n)
		require.Greater(t, len(r.Ends), 1)
		assert.InEpsilon(t, r.Ends[0].Seconds(), (r.Ends[1] - r.Ends[0] - Millisecond).Seconds(), tolerance, "again")
	}
}

// TestEachSumOnce: every card sums each chunk once, and a leaf passes each final sum through its
// lanes. Nothing is asked for or repeated while nothing is lost.
func TestEachSumOnce(t *testing.T) {
	j := reduction(4, AtSpines, 64)
	j.Compute = Second
	_, job := reduce(t, quiet(4, 4, 4), j, 1)
	leaves, spines := int64(0), int64(0)
	for i, c := range job.Cards {
		assert.Zero(t, c.Replays+c.Repeats+c.Duplicates)
		if i < 4 {
			leaves += c.Sums
		} else {
			spines += c.Sums
		}
	}
	assert.EqualValues(t, 1000, spines)
	assert.EqualValues(t, 4*2*1000, leaves)
	for _, w := range job.Members {
		assert.Zero(t, w.Asks+w.Resent)
	}
}

// TestLossInTrees: with queues that are too short for the window, every result arrives in the end,
// at every worker, wherever a packet is lost.
func TestLossInTrees(t *testing.T) {
	for _, place := range []struct {
		name  string
		roots Placement
		cut   func(*Clos)
	}{
		{"up and down the core", AtSpines, func(c *Clos) { c.Core.Limit = 3 * 5000 }},
		{"down to the hosts", AtSpines, func(c *Clos) { c.Host.Limit = 3 * 5000 }},
		{"the core, root at a leaf", AtLeaf, func(c *Clos) { c.Core.Limit = 3 * 5000 }},
	} {
		t.Run(place.name, func(t *testing.T) {
			c := quiet(4, 2, 4)
			c.Core.Rate = rate * 0.9
			place.cut(&c)
			j := reduction(1, place.roots, 64)
			j.Bytes = 4096 * 200
			j.Tree.Gain = 1.0 / 16
			// Slower links to the hosts than from them.
			net := NewNetwork(c)
			for _, h := range net.Hosts[:4] {
				h.down.byteTime = h.down.byteTime * 3 / 2
			}
			job := NewJob(net, j)
			job.Start()
			run(t, net.Engine, Second)
			require.NotEmpty(t, job.Ends)
			dropped, asks, repeats := int64(0), int64(0), int64(0)
			for _, p := range net.CorePorts() {
				dropped += p.Dropped
			}
			for _, h := range net.Hosts {
				dropped += h.down.Dropped
			}
			for _, w := range job.Members {
				asks += w.Asks
			}
			for _, c := range job.Cards {
				repeats += c.Replays + c.Repeats
			}
			cut := false
			for _, w := range job.Members {
				cut = cut || w.trees[0].Highest != 0
			}
			assert.True(t, cut, "no queue marks here, so losses cut")
			assert.Positive(t, dropped)
			assert.Positive(t, asks)
			assert.Positive(t, repeats)
		})
	}
}

// loser drops the n-th packet of a kind before its receiver.
type loser struct {
	receiver
	engine *Engine
	kind   kind
	n      int
}

func (l *loser) receive(p *Packet) {
	if p.kind == l.kind {
		if l.n--; l.n == 0 {
			l.engine.release(p)
			return
		}
	}
	l.receiver.receive(p)
}

// TestOneLoss: one lost packet is repaired within a few round trips, by one ask of each worker that
// misses the result. Only those workers' windows are halved. A leaf that waits for the final sum
// cannot know whose packet is missing, so it sends its own sum again.
func TestOneLoss(t *testing.T) {
	for _, c := range []struct {
		name     string
		port     func(*Network) *Port
		kind     kind
		ask      int64 // workers
		resent   int64 // contributions
		repeated int64 // own sums, by cards
		replays  int64 // results, by cards
	}{
		{"a worker's contribution", func(n *Network) *Port { return n.Hosts[1].nic }, contribution, 4, 1, 1, 0},
		{"an own sum", func(n *Network) *Port { return n.Leaves[1].up[0] }, contribution, 4, 0, 2, 0},
		{"a final sum to a leaf", func(n *Network) *Port { return n.Spines[0].down[1] }, result, 2, 0, 1, 1},
		{"a result to a worker", func(n *Network) *Port { return n.Hosts[1].down }, result, 1, 0, 0, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			small := quiet(2, 1, 2)
			small.LeafCard.Repeat = 20 * Microsecond
			net := NewNetwork(small)
			port := c.port(net)
			port.to = &loser{port.to, net.Engine, c.kind, 40}
			j := reduction(1, AtSpines, 64)
			j.Bytes, j.Timeout, j.Compute = 100*4096, 20*Millisecond, Second
			j.Tree.Gain = 1.0 / 16
			j.Tree.Most = 64
			job := NewJob(net, j)
			job.Start()
			run(t, net.Engine, 10*Millisecond)
			require.Len(t, job.Ends, 1)
			var asks, resent, cut, repeated, replays int64
			for _, w := range job.Members {
				asks += w.Asks
				resent += w.Resent
				if w.trees[0].Highest != 0 {
					cut++
					assert.Equal(t, w.trees[0].Highest/2, w.trees[0].Least)
				}
			}
			for _, card := range job.Cards {
				repeated += card.Repeats
				replays += card.Replays
			}
			assert.Equal(t, c.ask, asks, "asks")
			assert.Equal(t, c.ask, cut, "windows that were cut")
			assert.Equal(t, c.resent, resent, "contributions sent again")
			assert.Equal(t, c.repeated, repeated, "own sums sent again")
			assert.Equal(t, c.replays, replays, "replays")
			assert.Less(t, job.Ends[0], Millisecond)
		})
	}
}

// TestFinalOnce: a leaf's card takes a final sum once, for the chunk that waits for it.
func TestFinalOnce(t *testing.T) {
	net := NewNetwork(quiet(2, 1, 1))
	job := NewJob(net, reduction(1, AtSpines, 4))
	leaf := job.Cards[0]
	give := func(k kind, vid int64) {
		p := net.packet()
		p.kind, p.seq, p.job, p.from = k, vid, job, net.Hosts[0].id
		leaf.receive(p)
	}
	give(result, 0)
	give(contribution, 0)
	give(result, 0) // before the own sum has left the lanes
	run(t, net.Engine, Microsecond)
	assert.EqualValues(t, 1, leaf.Sums, "the own sum")
	give(result, 8)
	give(result, 0)
	give(result, 0)
	run(t, net.Engine, 20*Microsecond)
	give(result, 0)
	run(t, net.Engine, Millisecond)
	assert.EqualValues(t, 2, leaf.Sums, "own and final sum")
	assert.EqualValues(t, 1, net.Hosts[0].down.Packets)
}

// TestMergedMark: one leaf's marked way up reaches all workers, and the mark of one worker's way
// down reaches that one alone.
func TestMergedMark(t *testing.T) {
	marked := func(mark func(*Network)) (workers []int) {
		net := NewNetwork(quiet(2, 1, 2))
		mark(net)
		j := reduction(1, AtSpines, 64)
		j.Tree.Gain = 1.0 / 16
		j.Tree.First = 8
		job := NewJob(net, j)
		job.Start()
		run(t, net.Engine, 2*Millisecond)
		for i, w := range job.Members {
			if w.trees[0].Highest != 0 { // it was cut
				workers = append(workers, i)
			}
		}
		return workers
	}
	always := func(p *Port) { p.Mark, p.byteTime = 1, p.byteTime*5/4 }
	assert.Empty(t, marked(func(*Network) {}))
	assert.Equal(t, []int{0, 1, 2, 3}, marked(func(n *Network) { always(n.Leaves[1].up[0]) }), "up")
	assert.Equal(t, []int{2, 3}, marked(func(n *Network) { always(n.Spines[0].down[1]) }), "down to a leaf")
	assert.Equal(t, []int{1}, marked(func(n *Network) { always(n.Hosts[1].down) }), "down to a worker")
}

// TestTreesShareSpines: chunks go round-robin over the roots, and a hash gives each leaf one path.
func TestTreesShareSpines(t *testing.T) {
	bytes := func(j JobConfig) (used [][]int) {
		net := NewNetwork(quiet(4, 4, 2))
		job := NewJob(net, j)
		job.Start()
		run(t, net.Engine, 10*Millisecond)
		require.NotEmpty(t, job.Ends)
		for _, l := range net.Leaves {
			row := []int{}
			for s, p := range l.up {
				if p.Bytes > 0 {
					row = append(row, s)
				}
			}
			used = append(used, row)
		}
		return used
	}
	for _, row := range bytes(reduction(4, AtSpines, 64)) {
		assert.Equal(t, []int{0, 1, 2, 3}, row)
	}
	for _, row := range bytes(reduction(1, AtSpines, 64)) {
		assert.Equal(t, []int{0}, row)
	}
	hashed := bytes(reduction(1, AtLeaf, 64))
	for _, row := range hashed[1:] {
		assert.Len(t, row, 1)
		assert.Contains(t, hashed[0], row[0], "results come back the same way")
	}
	for _, row := range hashed[:1] {
		assert.LessOrEqual(t, len(row), 3, "one way to each other leaf")
	}
}
