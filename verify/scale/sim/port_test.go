package sim

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// tolerance is the relative difference between a simulated element and its closed form.
const tolerance = 0.02

// sink takes packets that nobody needs.
type sink struct {
	engine  *Engine
	packets int
	last    Time
}

func (s *sink) receive(p *Packet) {
	s.packets++
	s.last = s.engine.now
	s.engine.release(p)
}

func run(t *testing.T, e *Engine, until Time) {
	t.Helper()
	require.NoError(t, e.Run(context.Background(), until))
}

// poisson sends packets of 1,250 bytes to a link that serves one in a microsecond.
func poisson(t *testing.T, load float64, packets int, mark int64) *Port {
	t.Helper()
	e := &Engine{}
	p := newPort(e, LinkConfig{Rate: 10e9, Mark: mark}, &sink{engine: e})
	random := rand.New(rand.NewPCG(1, 2))
	var arrive func()
	arrive = func() {
		packet := e.packet()
		packet.wire = 1250
		p.send(packet)
		if packets--; packets > 0 {
			e.After(Time(random.ExpFloat64()*float64(Microsecond)/load), arrive)
		}
	}
	e.After(0, arrive)
	run(t, e, math.MaxInt64)
	return p
}

// TestMeanWait: the mean wait in an M/D/1 queue is ρ/(2(1-ρ)) services (Pollaczek and Khinchine).
func TestMeanWait(t *testing.T) {
	for _, load := range []float64{0.3, 0.5, 0.7} {
		p := poisson(t, load, 2_000_000, 0)
		want := load / (2 * (1 - load)) * Microsecond.Seconds()
		assert.InEpsilon(t, want, p.Waited.Seconds()/float64(p.Packets), tolerance, "load %g", load)
	}
}

// TestMarkingFraction: an arrival finds more than t services of work in an M/D/1 queue with
// Erlang's probability (1909).
func TestMarkingFraction(t *testing.T) {
	const load, services = 0.7, 3
	p := poisson(t, load, 2_000_000, services*1250)
	below := 0.0 // P(wait <= services) = (1-ρ) Σ (-ρ(t-k))^k / k! · e^{ρ(t-k)}
	for k := range services + 1 {
		x := load * float64(services-k)
		below += (1 - load) * math.Pow(-x, float64(k)) / math.Gamma(float64(k+1)) * math.Exp(x)
	}
	assert.InEpsilon(t, 1-below, float64(p.Marked)/float64(p.Packets), tolerance)
}

// TestBurst: of a burst, the packets that the queue holds arrive one after the other; the rest is
// dropped. Those that find more than the threshold are marked.
func TestBurst(t *testing.T) {
	e := &Engine{}
	to := &sink{engine: e}
	p := newPort(e, LinkConfig{Rate: 10e9, Delay: 5 * Microsecond, Limit: 20 * 1250, Mark: 8 * 1250}, to)
	for range 50 {
		packet := e.packet()
		packet.wire = 1250
		p.send(packet)
	}
	run(t, e, Second)
	assert.EqualValues(t, 20, p.Packets)
	assert.EqualValues(t, 30, p.Dropped)
	assert.EqualValues(t, 20-9, p.Marked, "the first nine find 0 to 8 packets")
	assert.Equal(t, 20, to.packets)
	assert.Equal(t, 25*Microsecond, to.last)
	assert.EqualValues(t, 20*1250, p.Highest)
}

// TestOrder: events of one time take place in the order in which they were scheduled.
func TestOrder(t *testing.T) {
	e := &Engine{}
	var got []int
	for i := range 100 {
		e.After(Microsecond, func() { got = append(got, i) })
	}
	run(t, e, Second)
	for i := range got {
		require.Equal(t, i, got[i])
	}
	require.Len(t, got, 100)
}

// TestCancelled: a cancelled context ends a run.
func TestCancelled(t *testing.T) {
	e := &Engine{}
	var again func()
	again = func() { e.After(1, again) }
	again()
	ctx, cancel := context.WithCancel(context.Background())
	e.After(1000, cancel)
	require.ErrorIs(t, e.Run(ctx, Second), context.Canceled)
	assert.Less(t, e.now, 2*eventsAtOnce*Time(1))
}
