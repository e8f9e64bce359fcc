package collective_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"tributary/driver"
	"tributary/driver/collective"
	"tributary/driver/element"
	"tributary/driver/wire"
)

// machines describes a group of members on machines.
type machines struct {
	layout string // by rank: the machine's name; "." is a machine without one
	sum    string // of the cards, one for each local index; "": none
	format wire.Format
}

func (k machines) String() string { return fmt.Sprint(k.layout, k.sum, k.format) }

// ranks returns the ranks of each machine, in the order of their lowest ranks.
func (k machines) ranks() (all [][]int) {
	for rank, c := range k.layout {
		first := strings.IndexRune(k.layout, c)
		if c == '.' || first == rank {
			all = append(all, []int{rank})
			continue
		}
		for i, ranks := range all {
			if ranks[0] == first {
				all[i] = append(ranks, rank)
			}
		}
	}
	return all
}

// group returns a group on these machines.
func (k machines) group(t testing.TB) collective.Group {
	g := newGroup(t, len(k.layout))
	k.settle(&g)
	return g
}

// settle gives the members of a group their machines.
func (k machines) settle(g *collective.Group) {
	for rank, c := range k.layout {
		if c != '.' {
			g.Members[rank].Machine = string(c)
		}
	}
}

// seats opens a card for each local index, and returns the seats of its job, by rank.
func (k machines) seats(t testing.TB) (cards []*driver.Card, seats []*driver.Member) {
	seats = make([]*driver.Member, len(k.layout))
	if k.sum == "" {
		return nil, seats
	}
	all := k.ranks()
	for index := range all[0] {
		c, err := driver.Open(t.Context(), "cpu:sum="+k.sum, driver.WithWorkers(len(all)), driver.WithFormat(k.format))
		require.NoError(t, err)
		t.Cleanup(func() { c.Close() })
		job, err := c.Configure(t.Context(), driver.JobConfig{Workers: len(all)})
		require.NoError(t, err)
		cards = append(cards, c)
		for machine, ranks := range all {
			seats[ranks[index]] = job.Member(machine)
		}
	}
	return cards, seats
}

// seated opens members with these seats.
func seated(seats []*driver.Member, opts ...collective.Option) opener {
	return func(ctx context.Context, g collective.Group) (collective.Collective, error) {
		return collective.OpenParallel(ctx, g, collective.ParallelConfig{Seat: seats[g.Rank]}, opts...)
	}
}

func (k machines) opener(t testing.TB, opts ...collective.Option) opener {
	_, seats := k.seats(t)
	return seated(seats, opts...)
}

// total returns the sum that SPEC.md, section 13, writes down: plain loops over the model of the card.
func (k machines) total(t testing.TB, f wire.Format, x [][]byte) []byte {
	all := k.ranks()
	members, length := len(all[0]), len(x[0])/element.Size(f)
	out := make([]byte, len(x[0]))
	onCard := k.sum != "" && k.format == f
	card := cardModel(t, cmp.Or(k.sum, "tree"), f)
	for i := range length {
		share := pieceOf(i, members, length)
		var sums []uint32 // of the machines
		for _, ranks := range all {
			at := func(index int) uint32 { return element.At(f, x[ranks[index%members]], i) }
			s := at(share + 1)
			for k := 2; k <= members; k++ {
				s = plus(f, s, at(share+k))
			}
			sums = append(sums, s)
		}
		switch from, to := share*length/members, (share+1)*length/members; {
		case onCard:
			sums[0], _ = card.Element(sums)
		case len(sums) == 1 && members == 1:
			sums[0] = canonical(f, sums[0])
		default:
			first := pieceOf(i-from, len(all), to-from)
			s := sums[first]
			for m := 1; m < len(sums); m++ {
				s = plus(f, s, sums[(first+m)%len(sums)])
			}
			sums[0] = s
		}
		element.Put(f, out, i, sums[0])
	}
	return out
}

// canonical replaces a NaN by the format's.
func canonical(f wire.Format, x uint32) uint32 {
	if info, _ := f.Info(); f != wire.Int32 && element.Value(f, x) != element.Value(f, x) {
		return info.NaN
	}
	return x
}

var cardSums = []string{"", "tree", "fused", "exact"}

// TestParallel: every operation has the bits of the written order: 1 to 4 machines of 1 to 4 members in any
// order of ranks, every sum or no card, lengths shorter than the group.
func TestParallel(t *testing.T) {
	noLeak(t)
	for _, layout := range []string{"a", ".", "aa", "aaaa", "ab", "....", "aabb", "abba", "aaabbb", "bcabcaabc"} {
		for _, sum := range cardSums {
			for _, f := range []wire.Format{wire.FP32, wire.BF16} {
				if f == wire.BF16 && sum != "exact" {
					continue
				}
				k := machines{layout, sum, f}
				t.Run(k.String(), func(t *testing.T) {
					var x [][][]byte // by length
					var totals, scattered [][]byte
					for i, length := range lengths(len(layout)) {
						x = append(x, randomArrays(uint64(length), f, len(layout), length))
						totals = append(totals, k.total(t, f, x[i]))
						_, s := written(collective.Ring, f, x[i])
						scattered = append(scattered, s)
					}
					allWell(t, k.group(t), k.opener(t, collective.WithWarnings(func(s string) { t.Error(s) })), func(ctx context.Context, c collective.Collective) error {
						for i, length := range lengths(len(layout)) {
							if err := everything(ctx, c, f, x[i], totals[i], scattered[i]); err != nil {
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

// TestParallelIsThePlainSum: int32 does not depend on machines and cards.
func TestParallelIsThePlainSum(t *testing.T) {
	x := randomArrays(3, wire.Int32, 6, 1003)
	want := plainSum(x)
	for _, layout := range []string{"abcabc", "aabbab", "aaaaaa", "......"} {
		for _, sum := range cardSums {
			k := machines{layout, sum, wire.Int32}
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
}

// TestParallelEveryFormat: random bits, so that NaNs, infinities and subnormals occur.
func TestParallelEveryFormat(t *testing.T) {
	for _, info := range wire.Formats {
		for _, layout := range []string{"abab", ".", "aa"} {
			for _, sum := range []string{"", "exact"} {
				k := machines{layout, sum, info.Format}
				x := randomArrays(5, wire.Int32, len(layout), 203*element.Size(info.Format)/4)
				allWell(t, k.group(t), k.opener(t), func(ctx context.Context, c collective.Collective) error {
					got, want := make([]byte, len(x[0])), k.total(t, info.Format, x)
					err := c.AllReduce(ctx, info.Format, got, x[c.Group().Rank])
					if err == nil && !bytes.Equal(got, want) {
						err = fmt.Errorf("%s: the sum differs", k)
					}
					return err
				})
			}
		}
	}
}

// TestParallelManyChunks: shares of more chunks than a card has calls under way, and a rest, over TCP, in
// place.
func TestParallelManyChunks(t *testing.T) {
	noLeak(t)
	const length = 2*(12*collective.MaxPayload/4) + 1001
	x := randomArrays(9, wire.Int32, 4, length)
	want := plainSum(x)
	for _, sum := range []string{"", "tree"} {
		k := machines{"abab", sum, wire.Int32}
		g, network := tcpGroup(t, 4)
		k.settle(&g)
		allWell(t, g, k.opener(t, network), func(ctx context.Context, c collective.Collective) error {
			for range 2 {
				got := bytes.Clone(x[c.Group().Rank])
				if err := c.AllReduce(ctx, wire.Int32, got, got); err != nil {
					return err
				}
				if !bytes.Equal(got, want) {
					return fmt.Errorf("the sum differs")
				}
			}
			return nil
		})
	}
}

// TestParallelSteps: 2(n-1) steps inside a machine, with 2(n-1)/n of the array each way; without a card
// 2(K-1) more between machines, with 2(K-1)/K of a share.
func TestParallelSteps(t *testing.T) {
	for _, layout := range []string{"aaabbb", "abcdabcd", "aa", ".."} {
		for _, sum := range []string{"", "tree"} {
			k := machines{layout, sum, wire.FP32}
			n, count := uint64(len(k.ranks()[0])), uint64(len(k.ranks()))
			const bytes = 4 * 60 * 7
			want := collective.Stats{Calls: 1, Steps: 2 * (n - 1), Sent: 2 * (n - 1) * bytes / n}
			if sum == "" {
				want.Steps += 2 * (count - 1)
				want.Sent += 2 * (count - 1) * bytes / n / count
			}
			want.Received = want.Sent
			allWell(t, k.group(t), k.opener(t), func(ctx context.Context, c collective.Collective) error {
				array := make([]byte, bytes)
				if err := c.AllReduce(ctx, wire.FP32, array, array); err != nil {
					return err
				}
				got := c.Stats()
				got.Chunks = 0
				if got != want {
					return fmt.Errorf("%s, rank %d: %+v, not %+v", k, c.Group().Rank, got, want)
				}
				return nil
			})
		}
	}
}

// TestParallelOtherFormat: a card is used for calls of its format, and for no others, in one group. Each
// member has one warning.
func TestParallelOtherFormat(t *testing.T) {
	noLeak(t)
	var w warnings
	k := machines{"abab", "exact", wire.FP32}
	x := randomArrays(4, wire.FP32, 4, 100)
	allWell(t, k.group(t), k.opener(t, w.option()), func(ctx context.Context, c collective.Collective) error {
		for _, f := range []wire.Format{wire.Int32, wire.FP32, wire.Int32, wire.FP32} {
			_, scattered := written(collective.Ring, f, x)
			if err := everything(ctx, c, f, x, k.total(t, f, x), scattered); err != nil {
				return err
			}
		}
		return nil
	})
	require.Len(t, w.texts, 4)
	require.Contains(t, w.texts[0], "is not used for int32: it sums fp32, not int32; a ring sums instead")
}

// TestParallelQueue: calls that queue, with arrays of their own.
func TestParallelQueue(t *testing.T) {
	noLeak(t)
	k := machines{"abba", "tree", wire.Int32}
	allWell(t, k.group(t), k.opener(t), queuedCalls)
}

// TestParallelPlans: members with different plans differ, though their arrays do not: another list of
// machines, no seat, or a seat at another kind of card. The error has the check of both plans, here by the
// bytes that SPEC.md, section 13, lists.
func TestParallelPlans(t *testing.T) {
	noLeak(t)
	k, other := machines{"abab", "tree", wire.Int32}, machines{"abab", "exact", wire.Int32}
	_, seats := k.seats(t)
	_, others := other.seats(t)
	check := func(names string, card ...byte) string {
		var b []byte
		for _, name := range names {
			b = append(b, 1, 0, byte(name))
		}
		if card != nil {
			b = binary.LittleEndian.AppendUint32(append(b, card...), 2)
		}
		return fmt.Sprintf("under plan %08x", crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)))
	}
	tree := []byte{byte(wire.Int32), byte(wire.Int32), byte(wire.SumTree), 0}
	exact := []byte{byte(wire.Int32), byte(wire.Int32), byte(wire.SumExact), 0}
	for stray := range 4 {
		for _, c := range []struct {
			seats []*driver.Member
			names string
			check string
		}{
			{make([]*driver.Member, 4), k.layout, check("abab")},
			{others, k.layout, check("abab", exact...)},
			{seats, "xbxb", check("xbxb", tree...)},
		} {
			errs := together(t, k.group(t), func(ctx context.Context, g collective.Group) (collective.Collective, error) {
				if g.Rank != stray {
					return seated(seats)(ctx, g)
				}
				g.Members = slices.Clone(g.Members)
				machines{layout: c.names}.settle(&g)
				return seated(c.seats)(ctx, g)
			}, oneCall)
			for rank, err := range errs {
				var differ *collective.DifferError
				require.ErrorAs(t, err, &differ, "rank %d", rank)
				require.Contains(t, differ.Ranks, stray)
				require.Contains(t, err.Error(), check("abab", tree...))
				require.Contains(t, err.Error(), c.check)
			}
		}
	}
}

// TestParallelDiffers: calls that differ are named, inside a machine or between machines, and no card sums
// them.
func TestParallelDiffers(t *testing.T) {
	noLeak(t)
	for _, sum := range []string{"", "tree"} {
		for _, layout := range []string{"aabb", "...."} {
			for other := range 4 {
				k := machines{layout, sum, wire.Int32}
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
	}
}

// TestParallelDeadMember: when a member dies, all others fail with its name.
func TestParallelDeadMember(t *testing.T) {
	noLeak(t)
	for _, sum := range []string{"", "tree"} {
		for dead := range 4 {
			v := socketVictim()
			k := machines{"abab", sum, wire.Int32}
			_, seats := k.seats(t)
			errs := together(t, k.group(t), func(ctx context.Context, g collective.Group) (collective.Collective, error) {
				if g.Rank == dead {
					return seated(seats, collective.WithNetwork(v.listen, v.dial))(ctx, g)
				}
				return seated(seats)(ctx, g)
			}, callsUntilDeath(4, dead, v))
			allLose(t, errs, dead)
		}
	}
}

// TestParallelGivenUp: a member gives up in a call that waits for another one, inside a machine or in the
// card: all fail with its name, also those whose job it has ended.
func TestParallelGivenUp(t *testing.T) {
	noLeak(t)
	for _, layout := range []string{"aabb", "...."} {
		for quitter := range 4 {
			late := quitter ^ 1 // on its machine: it waits inside
			if layout == "...." {
				late = (quitter + 2) % 4 // not before it: it waits in the card, as the next one does
			}
			k := machines{layout, "tree", wire.Int32}
			errs := together(t, k.group(t), k.opener(t), giveUp(4, quitter, late))
			for rank, err := range errs {
				if rank == quitter {
					require.ErrorAs(t, err, new(*collective.StoppedError))
					continue
				}
				var up *collective.GivenUpError
				require.ErrorAs(t, err, &up, "rank %d", rank)
				require.Equal(t, quitter, up.Rank)
			}
		}
	}
}

// TestReasonIsSlow: the card's job ends more than a second before members have the reason from the group. They
// once took that for a failure of the card.
func TestReasonIsSlow(t *testing.T) {
	k := machines{"....", "tree", wire.Int32}
	g := k.group(t)
	synctest.Test(t, func(t *testing.T) {
		net := &pipes{}
		const quitter, late = 1, 3 // the others wait in the card
		v := &victim{listenOn: net.listen, dialOn: net.dial}
		_, seats := k.seats(t)
		var over sync.WaitGroup
		over.Add(3)
		errs := together(t, g, func(ctx context.Context, g collective.Group) (collective.Collective, error) {
			if g.Rank == quitter {
				return seated(seats, net.option())(ctx, g)
			}
			return seated(seats, collective.WithNetwork(v.listen, v.dial))(ctx, g)
		}, func(ctx context.Context, c collective.Collective) error {
			array := make([]byte, 4000)
			if c.Group().Rank == late {
				over.Wait()
				return c.AllReduce(ctx, wire.Int32, array, array)
			}
			defer over.Done()
			own, cancel := context.WithCancel(ctx)
			defer cancel()
			p, err := c.StartAllReduce(own, wire.Int32, array, array)
			if err != nil {
				return err
			}
			if c.Group().Rank == quitter {
				time.Sleep(time.Second)                    // until it waits in the card
				v.lag.Store(int64(600 * time.Millisecond)) // for a header, and again for its reason
				cancel()
			}
			<-p.Done()
			return p.Err()
		})
		for rank, err := range errs {
			if rank == quitter {
				require.ErrorAs(t, err, new(*collective.StoppedError))
				continue
			}
			var up *collective.GivenUpError
			require.ErrorAs(t, err, &up, "rank %d", rank)
			require.Equal(t, quitter, up.Rank)
		}
	})
}

// TestParallelDeadCard: a card that dies ends the calls of its members with a CardError, and of all others.
func TestParallelDeadCard(t *testing.T) {
	noLeak(t)
	k := machines{"abab", "tree", wire.Int32}
	cards, seats := k.seats(t)
	require.NoError(t, cards[1].Close()) // of ranks 2 and 3
	failures := 0
	for rank, err := range together(t, k.group(t), seated(seats), oneCall) {
		var up *collective.GivenUpError
		if errorsAs(err, new(*collective.CardError)) {
			failures++
			require.GreaterOrEqual(t, rank, 2)
			continue
		}
		require.ErrorAs(t, err, &up, "rank %d", rank)
		require.GreaterOrEqual(t, up.Rank, 2)
	}
	require.Positive(t, failures)
}

// TestParallelInput: machines and seats that cannot be right are refused by name.
func TestParallelInput(t *testing.T) {
	k := machines{"abab", "tree", wire.Int32}
	_, seats := k.seats(t)
	_, wide := machines{"abcabc", "tree", wire.Int32}.seats(t)
	for _, c := range []struct {
		layout string
		rank   int
		seat   *driver.Member
		want   string
	}{
		{"aab", 0, nil, `machines: machine "a" of rank 0 (worker0) has 2 members, but machine "b" of rank 2 (worker2) has 1; all machines must have the same number`},
		{"abb", 1, nil, `machine "a" of rank 0 (worker0) has 1 members, but machine "b" of rank 1 (worker1) has 2`},
		{"abcbca", 5, nil, ""},
		{"ab.ab", 1, nil, `machine "" of rank 2 (worker2) has 1; all`},
		{"abab", 1, seats[0], "seat: rank 1 (worker1) has rank 0 of 2; that of its machine is 1 of 2"},
		{"abab", 1, wide[1], "has rank 1 of 3; that of its machine is 1 of 2"},
		{"abab", 4, nil, "it has no rank 4"},
	} {
		g := machines{layout: c.layout}.group(t)
		g.Rank = c.rank
		m, err := collective.OpenParallel(t.Context(), g, collective.ParallelConfig{Seat: c.seat})
		if c.want == "" {
			require.NoError(t, err)
			require.NoError(t, m.Close(t.Context()))
			continue
		}
		var input *collective.InputError
		require.True(t, asInput(err, &input), "%v", err)
		require.Contains(t, err.Error(), c.want)
	}
}
