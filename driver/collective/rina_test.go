package collective_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"tributary/driver"
	"tributary/driver/collective"
	"tributary/driver/daemon"
	"tributary/driver/element"
	"tributary/driver/model"
	_ "tributary/driver/transport/serve"
	"tributary/driver/wire"
)

// racks describes a group of members in racks.
type racks struct {
	layout string            // by rank: the rack's name; "." is a member without one
	cards  map[string]string // by rack: the options of its card
	format wire.Format       // of the cards
	ports  int               // of the cards beyond those of the members; 0 means the one that is needed
}

func (k racks) String() string { return fmt.Sprint(k.layout, k.cards, k.format) }

// members returns the ranks of a rack.
func (k racks) members(name string) (ranks []int) {
	for rank, c := range k.layout {
		if string(c) == name {
			ranks = append(ranks, rank)
		}
	}
	return ranks
}

// group returns a group in these racks.
func (k racks) group(t testing.TB) collective.Group {
	g := newGroup(t, len(k.layout))
	for rank, c := range k.layout {
		if c != '.' {
			g.Members[rank].Rack = string(c)
		}
	}
	return g
}

// rinaCard is an open card of a rack.
type rinaCard struct {
	*driver.Card
	seats []*driver.Member // by rank of its job; none if the card has too few ports
}

// open opens the cards, with a job for each rack.
func (k racks) open(t testing.TB) (cards map[string]rinaCard, plan []collective.RackCard) {
	cards = map[string]rinaCard{}
	for name, options := range k.cards {
		n := len(k.members(name))
		ports := n + max(1, k.ports)
		if k.ports < 0 {
			ports = n + 1 + k.ports
		}
		c, err := driver.Open(t.Context(), "cpu:"+options, driver.WithWorkers(ports), driver.WithFormat(k.format))
		require.NoError(t, err)
		t.Cleanup(func() { c.Close() })
		card := rinaCard{Card: c}
		if ports > n {
			job, err := c.Configure(t.Context(), driver.JobConfig{Workers: n + 1})
			require.NoError(t, err)
			for rank := range n + 1 {
				card.seats = append(card.seats, job.Member(rank))
			}
		}
		cards[name] = card
		plan = append(plan, collective.RackCard{Rack: name, Info: c.Info()})
	}
	return cards, plan
}

// config returns the seats of a member.
func (k racks) config(rank int, cards map[string]rinaCard, plan []collective.RackCard) collective.RinaConfig {
	cfg := collective.RinaConfig{Cards: plan}
	name := k.layout[rank : rank+1]
	if seats := cards[name].seats; seats != nil {
		ranks := k.members(name)
		cfg.Seat = seats[slices.Index(ranks, rank)]
		if rank == ranks[0] {
			cfg.Incoming = seats[len(ranks)]
		}
	}
	return cfg
}

// opener opens members by Rina.
func (k racks) opener(t testing.TB, opts ...collective.Option) opener {
	cards, plan := k.open(t)
	return func(ctx context.Context, g collective.Group) (collective.Collective, error) {
		return collective.OpenRina(ctx, g, k.config(g.Rank, cards, plan), opts...)
	}
}

// nodes returns the members of each node: racks in cards, and others singly.
func (k racks) nodes() (nodes [][]int) {
	for rank, c := range k.layout {
		switch ranks := k.members(string(c)); {
		case k.cards[string(c)] == "":
			nodes = append(nodes, []int{rank})
		case ranks[0] == rank:
			nodes = append(nodes, ranks)
		}
	}
	return nodes
}

// cardModel returns the model of a card with a sum.
func cardModel(t testing.TB, sum string, f wire.Format) *model.Arithmetic {
	which := map[string]wire.Sum{"tree": wire.SumTree, "fused": wire.SumFused, "exact": wire.SumExact}[sum]
	m, err := model.NewArithmetic(which, f, f, false)
	require.NoError(t, err)
	return m
}

// sum returns the sum that SPEC.md, section 12, writes down: plain loops over the model of each card.
func (k racks) sum(t testing.TB, f wire.Format, x [][]byte) []byte {
	nodes, length := k.nodes(), len(x[0])/element.Size(f)
	models := map[string]*model.Arithmetic{}
	for name, options := range k.cards {
		models[name] = cardModel(t, strings.TrimPrefix(options, "sum="), f)
	}
	identity := uint32(1) << (8*element.Size(f) - 1) // -0
	if f == wire.Int32 {
		identity = 0
	}
	all := make([]byte, len(x[0]))
	for i := range length {
		first := pieceOf(i, len(nodes), length)
		var s uint32
		for step := range nodes {
			ranks := nodes[(first+step)%len(nodes)]
			m := models[k.layout[ranks[0]:ranks[0]+1]]
			switch own := element.At(f, x[ranks[0]], i); {
			case m == nil && step == 0:
				s = own
			case m == nil:
				s = plus(f, s, own)
			default:
				var ports []uint32
				for _, rank := range ranks {
					ports = append(ports, element.At(f, x[rank], i))
				}
				if step == 0 {
					s = identity
				}
				s, _ = m.Element(append(ports, s))
			}
		}
		element.Put(f, all, i, s)
	}
	return all
}

// equip puts a card into racks, each with another sum.
func equip(names string, from int) map[string]string {
	sums := []string{"sum=tree", "sum=fused", "sum=exact"}
	cards := map[string]string{}
	for i, c := range names {
		cards[string(c)] = sums[(from+i)%len(sums)]
	}
	return cards
}

// TestRina: every operation has the bits of the written order: racks of 1 to 4 members with and without
// cards, 1 to 5 nodes, every sum, lengths shorter than the group.
func TestRina(t *testing.T) {
	noLeak(t)
	for _, c := range []struct{ layout, equipped string }{
		{"a", "a"}, {"aa", "a"}, {"aaaa", "a"},
		{"ab", "ab"}, {".aa", "a"}, {"aa.", "a"}, {"abab", "ab"}, {"baab", "a"},
		{"aaabb.", "ab"}, {"abcabc", "abc"}, {"aabbb", "a"},
		{".ab.aabb", "ab"}, {"abcdaaabbcc", "abcd"}, {"ab.caba.", "abc"}, {"abc..", ""},
	} {
		for from := range 3 {
			for _, f := range []wire.Format{wire.FP32, wire.Int32, wire.BF16} {
				if f != wire.FP32 && from > 0 {
					continue
				}
				k := racks{c.layout, equip(c.equipped, from), f, from}
				t.Run(k.String(), func(t *testing.T) {
					allWell(t, k.group(t), k.opener(t, collective.WithWarnings(func(s string) { t.Error(s) })), func(ctx context.Context, c collective.Collective) error {
						for _, length := range lengths(len(k.layout)) {
							x := randomArrays(uint64(length), f, len(k.layout), length)
							_, scattered := written(collective.Ring, f, x)
							if err := everything(ctx, c, f, x, k.sum(t, f, x), scattered); err != nil {
								return fmt.Errorf("%d elements: %w", length, err)
							}
						}
						return nil
					})
				})
			}
		}
	}
}

// TestRinaIsThePlainSum: int32 does not depend on racks and cards.
func TestRinaIsThePlainSum(t *testing.T) {
	x := randomArrays(3, wire.Int32, 8, 1003)
	want := plainSum(x)
	for _, equipped := range []string{"", "a", "bc", "abc"} {
		k := racks{"ab.caabb", equip(equipped, 0), wire.Int32, 0}
		allWell(t, k.group(t), k.opener(t), func(ctx context.Context, c collective.Collective) error {
			got := make([]byte, len(want))
			err := c.AllReduce(ctx, wire.Int32, got, x[c.Group().Rank])
			if err == nil && !bytes.Equal(got, want) {
				err = fmt.Errorf("%s differs from the plain sum", k)
			}
			return err
		})
	}
}

// TestRinaEveryFormat: random bits, so that NaNs, infinities and subnormals occur.
func TestRinaEveryFormat(t *testing.T) {
	for _, info := range wire.Formats {
		f := info.Format
		k := racks{"aba.bc", equip("abc", 0), f, 0}
		x := randomArrays(5, f, 6, 203)
		if f == wire.FP32 {
			x = randomArrays(5, wire.Int32, 6, 203)
		}
		_, scattered := written(collective.Ring, f, x)
		allWell(t, k.group(t), k.opener(t), func(ctx context.Context, c collective.Collective) error {
			return everything(ctx, c, f, x, k.sum(t, f, x), scattered)
		})
	}
}

// TestRinaManyChunks: pieces of more chunks than a card has calls under way, and a rest, over TCP.
func TestRinaManyChunks(t *testing.T) {
	noLeak(t)
	const length = 3*(13*collective.MaxPayload/4) + 1001
	k := racks{"aba.", equip("ab", 0), wire.FP32, 0}
	g, network := tcpGroup(t, 4)
	for rank, m := range k.group(t).Members {
		g.Members[rank].Rack = m.Rack
	}
	x := randomArrays(9, wire.FP32, 4, length)
	want := k.sum(t, wire.FP32, x)
	allWell(t, g, k.opener(t, network), func(ctx context.Context, c collective.Collective) error {
		for range 2 {
			got := bytes.Clone(x[c.Group().Rank])
			if err := c.AllReduce(ctx, wire.FP32, got, got); err != nil {
				return err
			}
			if !bytes.Equal(got, want) {
				return fmt.Errorf("the sum differs")
			}
		}
		return nil
	})
}

// TestRinaSteps: every node takes 2(G-1) steps and moves 2(G-1)/G of the array each way; members of a
// rack that are not its agent move nothing.
func TestRinaSteps(t *testing.T) {
	for layout, equipped := range map[string]string{"aaaa": "a", "aab": "ab", "abab..c": "ab", "aabbccd.": "abcd"} {
		k := racks{layout, equip(equipped, 0), wire.FP32, 0}
		nodes := k.nodes()
		const length = 60 * 7
		steps := uint64(2 * (len(nodes) - 1))
		allWell(t, k.group(t), k.opener(t), func(ctx context.Context, c collective.Collective) error {
			array := make([]byte, 4*length)
			if err := c.AllReduce(ctx, wire.FP32, array, array); err != nil {
				return err
			}
			want := collective.Stats{Calls: 1}
			if slices.ContainsFunc(nodes, func(ranks []int) bool { return ranks[0] == c.Group().Rank }) {
				want.Steps, want.Sent, want.Received = steps, steps*uint64(4*length/len(nodes)), steps*uint64(4*length/len(nodes))
			}
			got := c.Stats()
			got.Chunks = 0
			if got != want {
				return fmt.Errorf("%s, rank %d: %+v, not %+v", layout, c.Group().Rank, got, want)
			}
			return nil
		})
	}
}

// TestRinaIdentity: the identity at rank n changes no bit of any sum: a rack alone has the bits of its
// card with a job of its n members.
func TestRinaIdentity(t *testing.T) {
	for _, sum := range []string{"sum=tree", "sum=fused", "sum=exact"} {
		for _, info := range wire.Formats {
			for n := 1; n <= 4; n++ {
				f, size := info.Format, element.Size(info.Format)
				k := racks{"aaaa"[:n], map[string]string{"a": sum}, f, 0}
				x := randomArrays(7, wire.Int32, n, 1000*size/4) // every pattern of bits
				for m := range x {                               // and zeros of both signs together
					element.Put(f, x[m], 0, 0)
					for _, i := range []int{1, 3, 6, 999} {
						element.Put(f, x[m], i, wire.SumTree.Identity(f))
					}
					element.Put(f, x[m], 2, wire.SumTree.Identity(f)*uint32(m%2))
				}
				card, err := driver.Open(t.Context(), "cpu:"+sum, driver.WithWorkers(n), driver.WithFormat(f))
				require.NoError(t, err)
				job, err := card.Configure(t.Context(), driver.JobConfig{Workers: n})
				require.NoError(t, err)
				want := make([]byte, len(x[0]))
				require.NoError(t, job.ReduceBytes(t.Context(), want, x))
				require.NoError(t, card.Close())
				allWell(t, k.group(t), k.opener(t), func(ctx context.Context, c collective.Collective) error {
					got := make([]byte, len(want))
					err := c.AllReduce(ctx, f, got, x[c.Group().Rank])
					if err == nil && !bytes.Equal(got, want) {
						err = fmt.Errorf("%s of %d members in %s differs with the identity", sum, n, f)
					}
					return err
				})
			}
		}
	}
}

// TestRinaIsNotExact: exact cards round one after another.
func TestRinaIsNotExact(t *testing.T) {
	k := racks{"abab", map[string]string{"a": "sum=exact", "b": "sum=exact"}, wire.FP32, 0}
	tiny := float32(math.Exp2(-24))
	x := [][]float32{{1, 1}, {tiny, tiny}, {tiny, tiny}, {0, 0}} // exactly 1+2^-23 in both
	allWell(t, k.group(t), k.opener(t), func(ctx context.Context, c collective.Collective) error {
		got := make([]float32, 2)
		err := collective.AllReduce(ctx, c, wire.FP32, got, x[c.Group().Rank])
		// Piece 0 begins at rack a: 1 + 2^-24 is a tie. Piece 1 begins at rack b, and loses nothing.
		if err == nil && (got[0] != 1 || got[1] != 1+2*tiny) {
			err = fmt.Errorf("%v", got)
		}
		return err
	})
}

// TestRinaQueue: calls that queue, with arrays of their own.
func TestRinaQueue(t *testing.T) {
	noLeak(t)
	k := racks{"aab.b", equip("ab", 0), wire.Int32, 0}
	allWell(t, k.group(t), k.opener(t), queuedCalls)
}

// warnings collects warnings of all members.
type warnings struct {
	mu    sync.Mutex
	texts []string
}

func (w *warnings) option() collective.Option {
	return collective.WithWarnings(func(text string) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.texts = append(w.texts, text)
	})
}

// TestRinaFewPorts: a card without a port for the ring is not used; its members join singly, each with
// one warning.
func TestRinaFewPorts(t *testing.T) {
	noLeak(t)
	var w warnings
	k := racks{"abab.", map[string]string{"b": "sum=tree"}, wire.FP32, -1}
	x := randomArrays(4, wire.FP32, 5, 100)
	all, scattered := written(collective.Ring, wire.FP32, x)
	allWell(t, k.group(t), k.opener(t, w.option()), func(ctx context.Context, c collective.Collective) error {
		err := everything(ctx, c, wire.FP32, x, all, scattered)
		if s := c.Stats(); err == nil && s.Steps < 2*2*4 {
			err = fmt.Errorf("%+v", s)
		}
		return err
	})
	require.Equal(t, slices.Repeat([]string{"the card of rack b is not used for fp32: it has 2 ports; the members and the ring need 3; its 2 members join the ring singly"}, 2), w.texts)
}

// TestRinaOtherFormat: a card is used for calls of its format, and for no others, in one group.
func TestRinaOtherFormat(t *testing.T) {
	noLeak(t)
	var w warnings
	k := racks{"abab.", equip("ab", 0), wire.FP32, 0}
	x := randomArrays(4, wire.FP32, 5, 100)
	ring, scattered := written(collective.Ring, wire.Int32, x)
	_, scatteredFP32 := written(collective.Ring, wire.FP32, x)
	allWell(t, k.group(t), k.opener(t, w.option()), func(ctx context.Context, c collective.Collective) error {
		for range 2 {
			if err := everything(ctx, c, wire.Int32, x, ring, scattered); err != nil {
				return err
			}
			if err := everything(ctx, c, wire.FP32, x, k.sum(t, wire.FP32, x), scatteredFP32); err != nil {
				return err
			}
		}
		return nil
	})
	require.Len(t, w.texts, 4)
	require.Contains(t, w.texts[0], "it sums fp32, not int32")
}

// except opens a rank by a victim's network.
func (k racks) except(rank int, v *victim, cards map[string]rinaCard, plan []collective.RackCard) opener {
	return func(ctx context.Context, g collective.Group) (collective.Collective, error) {
		var opts []collective.Option
		if g.Rank == rank {
			opts = append(opts, collective.WithNetwork(v.listen, v.dial))
		}
		return collective.OpenRina(ctx, g, k.config(g.Rank, cards, plan), opts...)
	}
}

// TestRinaDeadMember: when a member dies, whatever its part, all others fail with the member's name, or
// with an error of the job that it has left.
func TestRinaDeadMember(t *testing.T) {
	noLeak(t)
	for dead, part := range []string{"agent of a", "agent of b", "worker of a", "worker of b", "single"} {
		t.Run(part, func(t *testing.T) {
			v := socketVictim()
			k := racks{"abab.", equip("ab", 0), wire.Int32, 0}
			cards, plan := k.open(t)
			errs := together(t, k.group(t), k.except(dead, v, cards, plan), callsUntilDeath(5, dead, v))
			allLose(t, errs, dead)
		})
	}
}

// TestRinaGivenUp: a member gives up in a call that waits for another one: all fail with its name, and
// nobody hangs.
func TestRinaGivenUp(t *testing.T) {
	noLeak(t)
	for quitter := range 5 {
		late := 4 // calls when all others have failed
		if quitter == late {
			late = 0
		}
		k := racks{"abab.", equip("ab", 0), wire.Int32, 0}
		errs := together(t, k.group(t), k.opener(t), giveUp(5, quitter, late))
		for rank, err := range errs {
			var stopped *collective.StoppedError
			var up *collective.GivenUpError
			var failed *collective.CardError // of a job that the quitter has ended
			switch {
			case rank == quitter:
				require.ErrorAs(t, err, &stopped)
			case errorsAs(err, &failed):
				require.Equal(t, k.layout[quitter], k.layout[rank])
			default:
				require.ErrorAs(t, err, &up, "rank %d", rank)
			}
		}
	}
}

// TestRinaDeadCard: a card that dies ends the call of its rack with a CardError, and of all others.
func TestRinaDeadCard(t *testing.T) {
	noLeak(t)
	k := racks{"abab.", equip("ab", 0), wire.Int32, 0}
	cards, plan := k.open(t)
	var ready sync.WaitGroup
	ready.Add(5)
	errs := together(t, k.group(t), func(ctx context.Context, g collective.Group) (collective.Collective, error) {
		return collective.OpenRina(ctx, g, k.config(g.Rank, cards, plan))
	}, func(ctx context.Context, c collective.Collective) error {
		if err := oneCall(ctx, c); err != nil {
			return err
		}
		ready.Done()
		ready.Wait()
		if c.Group().Rank == 3 {
			cards["b"].Close()
		}
		array := make([]byte, 16<<20)
		return c.AllReduce(ctx, wire.Int32, array, array)
	})
	failures := 0
	for rank, err := range errs {
		var failed *collective.CardError
		var up *collective.GivenUpError
		if errorsAs(err, &failed) {
			failures++
			require.Equal(t, "b", k.layout[rank:rank+1])
			continue
		}
		require.ErrorAs(t, err, &up, "rank %d", rank)
	}
	require.Positive(t, failures)
}

// TestRinaDiffers: calls that differ within a rack or elsewhere are named, and no card sums them.
func TestRinaDiffers(t *testing.T) {
	noLeak(t)
	for other := range 5 {
		k := racks{"abab.", equip("ab", 0), wire.Int32, 0}
		errs := together(t, k.group(t), k.opener(t), func(ctx context.Context, c collective.Collective) error {
			array := make([]byte, 400)
			if c.Group().Rank == other {
				array = make([]byte, 4000)
			}
			return c.AllReduce(ctx, wire.Int32, array, array)
		})
		for rank, err := range errs {
			var differ *collective.DifferError
			require.ErrorAs(t, err, &differ, "rank %d", rank)
			require.Contains(t, differ.Ranks, other)
		}
	}
}

// TestRinaPlans: members with different plans differ, though their arrays do not. The error has the
// check of both plans, here by the bytes that SPEC.md, section 12, lists.
func TestRinaPlans(t *testing.T) {
	noLeak(t)
	k := racks{"abab.", equip("ab", 0), wire.Int32, 0}
	cards, plan := k.open(t)
	slices.SortFunc(plan, func(x, y collective.RackCard) int { return bytes.Compare([]byte(y.Rack), []byte(x.Rack)) })
	check := func(racks ...string) string {
		b := []byte("\x01\x00a\x01\x00b\x01\x00a\x01\x00b\x00\x00")
		for _, name := range racks {
			info := cards[name].Info()
			b = append(b, 1, 0, name[0], byte(info.Format), byte(info.Result), byte(info.Sum), 0)
			b = binary.LittleEndian.AppendUint32(b, 3)
		}
		return fmt.Sprintf("under plan %08x", crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)))
	}
	for other := range 5 {
		errs := together(t, k.group(t), func(ctx context.Context, g collective.Group) (collective.Collective, error) {
			cfg := k.config(g.Rank, cards, plan)
			if g.Rank == other { // has not heard of the other rack's card, or of rack a's
				cfg.Cards = slices.Clone(plan[:1])
				if g.Members[other].Rack == "a" {
					cfg.Cards = slices.Clone(plan[1:])
				}
			}
			return collective.OpenRina(ctx, g, cfg)
		}, oneCall)
		for rank, err := range errs {
			var differ *collective.DifferError
			require.ErrorAs(t, err, &differ, "rank %d", rank)
			require.Contains(t, differ.Ranks, other)
			require.Contains(t, err.Error(), check("a", "b"))
			if k.layout[other] == 'a' {
				require.Contains(t, err.Error(), check("a"))
			} else {
				require.Contains(t, err.Error(), check("b"))
			}
		}
	}
}

// lie is a message of an impostor: a chunk at the wrong place, or the right one.
type lie struct {
	phase   byte
	first   uint64
	payload []byte
}

// TestRinaLiar: an agent finds a wrong piece, and its rack learns who sent it; also while a call of the
// card waits for a member of the rack.
func TestRinaLiar(t *testing.T) {
	noLeak(t)
	piece := make([]byte, 2000)
	for _, c := range []struct {
		stalls bool
		lies   []lie
		text   string
	}{
		{false, []lie{{0, 1, piece}}, "came instead of phase 0, step 0, element 500"},
		{true, []lie{{0, 1, piece}}, "came instead of phase 0, step 0, element 500"},
		{false, []lie{{0, 500, piece}, {1, 1, piece}}, "came instead of phase 1, step 0, element 0"},
	} {
		stalls := c.stalls
		k := racks{"aa.", equip("a", 0), wire.Int32, 0}
		g := k.group(t)
		cards, plan := k.open(t)
		info := cards["a"].Info()
		listed := []byte{1, 0, 'a', 1, 0, 'a', 0, 0, 1, 0, 'a', byte(info.Format), byte(info.Result), byte(info.Sum), 0, 3, 0, 0, 0}
		// impostor sends the agent messages as a member, and waits until it has ended.
		impostor := func(rank int, lies []lie) error {
			le, table := binary.LittleEndian, crc32.MakeTable(crc32.Castagnoli)
			g := g
			g.Rank = rank
			conn, err := net.Dial("unix", g.Members[0].Address[5:])
			if err != nil {
				return err
			}
			defer conn.Close()
			if err := collective.Greet(&g, conn, 0); err != nil {
				return err
			}
			for _, l := range lies {
				h := collective.NewHeader(collective.AllReduceOp, wire.Int32, collective.Rina, 7, 1, 1000, uint32(len(l.payload)), crc32.Checksum(l.payload, table)).Encode()
				h[9] = l.phase
				le.PutUint32(h[12:], crc32.Checksum(listed, table))
				le.PutUint64(h[40:], l.first)
				le.PutUint32(h[60:], crc32.Checksum(h[:60], table))
				if _, err := conn.Write(append(h, l.payload...)); err != nil {
					return err
				}
			}
			_, _ = io.Copy(io.Discard, conn)
			return nil
		}
		errs := together(t, g, func(ctx context.Context, g collective.Group) (collective.Collective, error) {
			if g.Rank == 2 || g.Rank == 1 && stalls { // an impostor has its place
				return collective.Open(ctx, collective.Ring, collective.Group{Members: g.Members[g.Rank : g.Rank+1]})
			}
			return collective.OpenRina(ctx, g, k.config(g.Rank, cards, plan))
		}, func(ctx context.Context, m collective.Collective) error {
			members := m.Group().Members
			switch {
			case len(members) > 1:
				return oneCall(ctx, m)
			case members[0].ID == "worker1":
				return impostor(1, []lie{{3, 0, nil}}) // agrees, and brings nothing
			}
			return impostor(2, c.lies)
		})
		for rank, err := range errs {
			if rank == 2 || rank == 1 && stalls {
				require.NoError(t, err)
				continue
			}
			var lies *collective.ProtocolError
			require.ErrorAs(t, err, &lies, "rank %d", rank)
			require.Equal(t, 2, lies.Rank)
			require.Contains(t, lies.Text, c.text)
		}
	}
}

// TestRinaClosedCard: no call on a closed card succeeds, however short.
func TestRinaClosedCard(t *testing.T) {
	noLeak(t)
	for range 20 {
		k := racks{"aaa", equip("a", 0), wire.Int32, 0}
		cards, plan := k.open(t)
		require.NoError(t, cards["a"].Close())
		errs := together(t, k.group(t), func(ctx context.Context, g collective.Group) (collective.Collective, error) {
			return collective.OpenRina(ctx, g, k.config(g.Rank, cards, plan))
		}, oneCall)
		for rank, err := range errs {
			var failed *collective.CardError
			var up *collective.GivenUpError
			if !errorsAs(err, &failed) {
				require.ErrorAs(t, err, &up, "rank %d", rank)
			}
		}
	}
}

// TestRinaInput: plans and seats that cannot be right are refused by name.
func TestRinaInput(t *testing.T) {
	k := racks{"abab.", equip("ab", 0), wire.Int32, 0}
	g := k.group(t)
	cards, plan := k.open(t)
	other := racks{"aaa", equip("a", 1), wire.FP32, 0}
	others, _ := other.open(t)
	for want, s := range map[string]struct {
		rank   int
		change func(c *collective.RinaConfig)
	}{
		`a card for rack "z", of which no member`: {0, func(c *collective.RinaConfig) {
			c.Cards = append(slices.Clone(plan), collective.RackCard{Rack: "z"})
		}},
		`a card for rack "", of which no member`: {0, func(c *collective.RinaConfig) {
			c.Cards = append(slices.Clone(plan), collective.RackCard{})
		}},
		`two cards for rack`:      {0, func(c *collective.RinaConfig) { c.Cards = append(slices.Clone(plan), plan[0]) }},
		"the plan has no card":    {4, func(c *collective.RinaConfig) { c.Seat = cards["a"].seats[0] }},
		"it has none at the card": {2, func(c *collective.RinaConfig) { c.Seat = nil }},
		"rank 0 (worker0), rack \"a\": it is the agent, and lacks rank 2": {0, func(c *collective.RinaConfig) { c.Incoming = nil }},
		"which belongs to the agent, rank 0 (worker0)":                    {2, func(c *collective.RinaConfig) { c.Incoming = cards["a"].seats[2] }},
		"it is rank 0 of 3; that of the plan is 1 of 3":                   {2, func(c *collective.RinaConfig) { c.Seat = cards["a"].seats[0] }},
		"it is rank 1 of 3; that of the plan is 2 of 3":                   {1, func(c *collective.RinaConfig) { c.Incoming = cards["b"].seats[1] }},
		"it is rank 1 of 4; that of the plan is 1 of 3":                   {2, func(c *collective.RinaConfig) { c.Seat = others["a"].seats[1] }},
		"is another one than the plan's: tree of int32 into int32, saturate false, 3 ports, not": {2, func(c *collective.RinaConfig) {
			c.Cards = slices.Clone(plan)
			for i := range c.Cards {
				c.Cards[i].Info.Sum = wire.SumExact
			}
		}},
	} {
		g.Rank = s.rank
		cfg := k.config(s.rank, cards, plan)
		s.change(&cfg)
		_, err := collective.OpenRina(t.Context(), g, cfg)
		var input *collective.InputError
		require.True(t, asInput(err, &input), "%s: %v", want, err)
		require.Contains(t, err.Error(), want)
	}
	g.Rank = 9
	_, err := collective.OpenRina(t.Context(), g, collective.RinaConfig{})
	require.ErrorContains(t, err, "it has no rank 9")
}

func errorsAs[E error](err error, to *E) bool {
	e, ok := err.(E)
	*to = e
	return ok
}

// TestRinaServed: the members have sessions of their own with the daemons of their cards, as processes
// do. Every bit is as with cards in the process, and the death of a member is its name.
func TestRinaServed(t *testing.T) {
	noLeak(t)
	for dead, part := range []string{"agent of a", "agent of b", "worker of a", "worker of b", "single", "nobody"} {
		t.Run(part, func(t *testing.T) { served(t, dead) })
	}
}

// served makes a call, and another one in which a rank dies.
func served(t *testing.T, dead int) {
	const length = 200_001
	k := racks{"abab.", equip("ab", 1), wire.FP32, 0}
	cards, plan := k.serve(t)
	x := randomArrays(6, wire.FP32, 5, length)
	want := k.sum(t, wire.FP32, x)
	v := socketVictim()
	var ready sync.WaitGroup
	ready.Add(5)
	errs := together(t, k.group(t), k.except(dead, v, cards, plan), func(ctx context.Context, c collective.Collective) error {
		own := c.Group().Rank
		got := make([]byte, len(want))
		err := c.AllReduce(ctx, wire.FP32, got, x[own])
		ready.Done()
		ready.Wait()
		switch {
		case err != nil:
			return err
		case !bytes.Equal(got, want):
			return fmt.Errorf("the sum differs")
		case dead >= 5:
			return nil
		case own == dead:
			v.kill()
			return nil
		}
		return c.AllReduce(ctx, wire.FP32, got, x[own])
	})
	if dead < 5 {
		allLose(t, errs, dead)
		return
	}
	for rank, err := range errs {
		require.NoError(t, err, "rank %d", rank)
	}
}

// serve runs a daemon for each card, with a job for its rack.
func (k racks) serve(t testing.TB) (cards map[string]rinaCard, plan []collective.RackCard) {
	cards = map[string]rinaCard{}
	for name, options := range k.cards {
		n := len(k.members(name))
		c, err := driver.Open(t.Context(), "cpu:"+options, driver.WithWorkers(n+1), driver.WithFormat(k.format))
		require.NoError(t, err)
		path := filepath.Join(socketDir(t), "s")
		listener, err := net.Listen("unix", path)
		require.NoError(t, err)
		ctx, stop := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() {
			ended <- daemon.New(map[string]daemon.Card{"card": c}, daemon.Options{}).Serve(ctx, listener, 0)
		}()
		t.Cleanup(func() {
			stop()
			require.NoError(t, <-ended)
			c.Close()
		})
		agent, err := driver.Open(t.Context(), "serve:unix:"+path)
		require.NoError(t, err)
		t.Cleanup(func() { agent.Close() })
		job, err := agent.Configure(t.Context(), driver.JobConfig{Workers: n + 1, Here: []int{0, n}})
		require.NoError(t, err)
		seats := []*driver.Member{job.Member(0)}
		for rank := 1; rank < n; rank++ {
			m, err := driver.Join(t.Context(), job.Ticket(), rank)
			require.NoError(t, err)
			t.Cleanup(func() { _ = m.Job().Card().Close() })
			seats = append(seats, m)
		}
		cards[name] = rinaCard{agent, append(seats, job.Member(n))}
		plan = append(plan, collective.RackCard{Rack: name, Info: agent.Info()})
	}
	return cards, plan
}
