package roce

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tributary/driver"
	"tributary/verify/system/roce/rig"
)

// job is a job under RoCEv2 of the first hosts.
type job struct {
	ranks  int
	window int    // of the card, in packets
	flags  string // of all workers
	late   map[int]<-chan struct{}
	faults func([]rig.End)
}

// run sets the job up on a card, and runs its workers. Their connections are removed at the end.
func (j *job) run(t *testing.T, o owner) ([]rig.Outcome, error) {
	t.Helper()
	var connections *driver.Connections
	outcomes, err := hosts.Work(j.ranks, fmt.Sprintf("%s -window %d", j.flags, j.window), nil, func(ends []rig.End) (err error) {
		connections, err = o.Card.Connect(t.Context(), driver.ConnectConfig{Ranks: o.Ranks(ends), Window: j.window})
		if err == nil && j.faults != nil {
			j.faults(ends)
		}
		return err
	}, j.late)
	if connections != nil {
		require.NoError(t, connections.End(t.Context()))
		require.NoError(t, connections.Disconnect(t.Context()))
	}
	return outcomes, err
}

// succeeds runs the job; every element must be right.
func (j *job) succeeds(t *testing.T, o owner) []rig.Outcome {
	t.Helper()
	outcomes, err := j.run(t, o)
	require.NoError(t, err)
	for _, r := range outcomes {
		require.Empty(t, r.Error, "rank %d", r.Rank)
		require.Zero(t, r.Wrong, "rank %d", r.Rank)
	}
	return outcomes
}

// owner is the owner of a card in a test.
type owner struct{ *rig.Owner }

// own takes a card until the test ends.
func own(t *testing.T, c *rig.Card) owner {
	t.Helper()
	o, err := c.Own(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, o.Close()) })
	return owner{o}
}

// counters reads the card's.
func (o owner) counters(t *testing.T) map[string]uint32 {
	t.Helper()
	rows, err := o.Card.Counters(t.Context())
	require.NoError(t, err)
	all := map[string]uint32{}
	for _, row := range rows {
		all[row.Name] = row.Value
	}
	return all
}

// sums is the flags of jobs with SEND and RDMA WRITE, every MTU, and PSNs that wrap.
var sums = []string{
	"-mtu 1024 -packets 4 -elements 20000 -arrays 2",
	"-mtu 2048 -packets 2 -elements 20001 -write",
	"-mtu 4096 -elements 20001",
	"-mtu 1024 -packets 16 -elements 50000 -psn 0xfffff0",
}

// trySums runs each of them with two ranks and with three.
func trySums(t *testing.T, c *rig.Card, o owner) {
	t.Helper()
	for _, ranks := range []int{2, 3} {
		for _, flags := range sums {
			j := job{ranks: ranks, window: 16, flags: flags}
			r := j.succeeds(t, o)
			t.Logf("%d ranks %s: %.2f s, %+v", ranks, flags, r[0].Seconds, c.Losses.Reset())
		}
	}
}

// TestSums: registered connections carry sums.
func TestSums(t *testing.T) {
	c := connect(t, *summing)
	judged := judge(t, c)
	trySums(t, c, own(t, c))
	judged()
}

// TestOneArmed: the same through a card with one Ethernet port, which relays the acknowledgements.
func TestOneArmed(t *testing.T) {
	c, err := hosts.ConnectOneArmed(strings.Fields(*oneArmed))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	judged := judge(t, c)
	o := own(t, c)
	trySums(t, c, o)
	assert.Positive(t, o.counters(t)["relayed"])
	judged()
}

// TestLongMessages: messages of 170 packets of 1 KiB, two in flight, as in NetReduce (ASPLOS 2023).
func TestLongMessages(t *testing.T) {
	c := connect(t, *summing)
	o := own(t, c)
	for _, ranks := range []int{2, 3} {
		for _, write := range []string{"", " -write"} {
			j := job{ranks: ranks, window: 512, flags: "-mtu 1024 -packets 170 -elements 200000 -lateness 8" + write}
			before := o.counters(t)
			r := j.succeeds(t, o)
			t.Logf("%d ranks%s: %.2f s, %+v", ranks, write, r[0].Seconds, c.Losses.Reset())
			assert.EqualValues(t, (200000*4+1023)/1024, o.counters(t)["chunks"]-before["chunks"])
		}
	}
}
