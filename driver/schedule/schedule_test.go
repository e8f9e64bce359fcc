package schedule

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestShare gives out the chunks of many calls one by one, and compares the trees' shares.
func TestShare(t *testing.T) {
	for _, s := range []Schedule{{0}, {0, 1}, {0, 0, 1}, {2, 1, 0, 1}, {1, 1, 1}, {0, 2}} {
		from := 0 // counts the chunks of all calls
		for _, chunks := range []int{1, 5, 0, 2, 3, 17, 4, 9, 6} {
			places := make([][]int, 3)
			for c := range chunks {
				tree := s[(from+c)%len(s)]
				places[tree] = append(places[tree], c)
			}
			for tree, want := range places {
				view, n := s.Share(tree, from, chunks)
				require.Equal(t, len(want), n, "%v: chunks of tree %d of %d from %d", s, tree, chunks, from)
				for k, place := range want {
					require.Equal(t, place, view.Chunk(k), "%v: chunk %d of tree %d of %d from %d", s, k, tree, chunks, from)
					n := 1
					for k+n < len(want) && want[k+n] == place+n {
						n++
					}
					require.Equal(t, n, view.Run(k, len(want)-k), "%v: run of chunk %d", s, k)
				}
			}
			from += chunks
		}
	}
}

func TestList(t *testing.T) {
	v := List([]int{2, 3, 9})
	require.Equal(t, []int{2, 3, 9}, []int{v.Chunk(0), v.Chunk(1), v.Chunk(2)})
	require.Equal(t, []int{2, 1, 1}, []int{v.Run(0, 3), v.Run(1, 2), v.Run(2, 1)})
	require.Equal(t, View{}, List(nil))
	require.Equal(t, 5, View{}.Run(7, 5))
}

func TestOnly(t *testing.T) {
	require.Equal(t, Schedule{0, 2, 0}, Schedule{0, 1, 2, 0, 1}.Only([]bool{true, false, true}))
	require.Equal(t, Schedule{1, 2}, Schedule{0, 0}.Only([]bool{false, true, true}))
	require.Empty(t, Schedule{0}.Only([]bool{false}))
}

func TestCheck(t *testing.T) {
	require.NoError(t, Schedule{0, 2}.Check(3))
	require.NoError(t, RoundRobin(3).Check(3))
	require.EqualError(t, Schedule{}.Check(2), "it names no tree; name at least one of the 2 trees, from 0, as in 0,1")
	require.EqualError(t, Schedule{0, 2}.Check(2), "entry 1 names tree 2, which does not exist; trees are 0 to 1")
	require.EqualError(t, Schedule{-1}.Check(2), "entry 0 names tree -1, which does not exist; trees are 0 to 1")
	require.EqualError(t, make(Schedule, Most+1).Check(1), "it has 65537 entries; the limit is 65536")
}
