package elastic_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"tributary/driver/collective/elastic"
	"tributary/driver/wire"
)

// TestMembersComeAndGo: calls of three, of four, of three again, in plans of their own.
func TestMembersComeAndGo(t *testing.T) {
	m := newTeam(t, 3)
	mates := m.joinAll(m.selves("a", "b", "c")...)
	m.sums(mates, 1)
	m.sums(mates, 2)
	require.EqualValues(t, 1, mates[0].Plan().Generation)
	mates = m.add(mates, "d")
	m.sums(mates, 3)
	require.EqualValues(t, 3, mates[3].Done())
	require.NoError(t, mates[1].Close(m.ctx))
	mates = append(mates[:1], mates[2:]...)
	m.sums(mates, 4)
	for _, p := range mates {
		require.NoError(t, p.Close(m.ctx))
		require.ErrorIs(t, p.AllReduce(m.ctx, wire.Int32, make([]byte, 4), make([]byte, 4)), elastic.ErrClosed)
	}
}

// TestCardComesAndGoes: a rack's card that is added and killed changes the steps, not the sums.
func TestCardComesAndGoes(t *testing.T) {
	m := newTeam(t, 3)
	path := filepath.Join(m.dir, "card")
	selves := m.selves("a", "b", "c")
	for i := range 2 {
		selves[i].Rack, selves[i].Card = "r", "serve:unix:"+path
	}
	mates := m.joinAll(selves...)
	m.sums(mates, 1)
	require.Empty(t, mates[0].Plan().Cards)
	stop := serveCard(t, path, 2)
	m.until(mates, func(p elastic.Plan) bool { return len(p.Cards) == 1 })
	m.sums(mates, 2)
	m.sums(mates, 3)
	stop()
	m.sums(mates, 4)
	require.Empty(t, mates[0].Plan().Cards)
	serveCard(t, path, 2)
	m.until(mates, func(p elastic.Plan) bool { return len(p.Cards) == 1 })
	m.sums(mates, 5)
}

// until waits until all mates have seen a plan.
func (m *team) until(mates []*mate, f func(p elastic.Plan) bool) {
	m.Helper()
	for _, p := range mates {
		require.NoError(m, p.Await(m.ctx, f), "%s: %+v", p.id, p.Plan())
	}
}
