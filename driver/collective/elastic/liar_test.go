package elastic_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"tributary/driver/collective"
	"tributary/driver/collective/elastic"
	"tributary/driver/wire"
)

// told is a group of two in which rank 0 says what a test has it say. Rank 1 has the outcome of call 1.
type told struct {
	collective.Collective           // nil: nothing else is called
	record                [6]uint64 // of rank 0: flags, since, start, done, bytes of the outcome and of the cause
	outcome               []byte    // what rank 0 broadcasts yet
	asked                 int       // bytes of the largest broadcast
}

func (c *told) Group() collective.Group {
	return collective.Group{Rank: 1, Members: make([]collective.Member, 2)}
}

func (c *told) AllGather(_ context.Context, _ wire.Format, dst, src []byte) error {
	copy(dst[len(src):], src)
	_, err := binary.Encode(dst, binary.LittleEndian, c.record)
	return err
}

func (c *told) Broadcast(_ context.Context, _ wire.Format, b []byte, _ int) error {
	c.asked = max(c.asked, len(b))
	if len(b) > len(c.outcome) {
		return errors.New("it has fewer bytes")
	}
	c.outcome = c.outcome[copy(b, c.outcome):]
	return nil
}

// TestLiar: a member that lies about itself takes no memory on others and ends no process. They say what it said
// that cannot be.
func TestLiar(t *testing.T) {
	for want, lie := range map[string]*told{
		"rank 0 says that it has the outcome of call 3, and rank 1 says that call 1 is its last": {record: [6]uint64{0, 1, 0, 3, 100, 0}},
		"rank 0 says that its outcome of call 2 has 1 bytes":                                     {record: [6]uint64{0, 1, 0, 2, 1, 0}},
		"it has fewer bytes": {record: [6]uint64{0, 1, 0, 2, 1 << 62, 0}},
	} {
		_, err := elastic.Agree(t.Context(), lie, 1)
		require.ErrorContains(t, err, want)
		require.LessOrEqual(t, lie.asked, 64<<20)
	}
}

// TestUnreadableOutcome: an outcome that no member leaves fails the call.
func TestUnreadableOutcome(t *testing.T) {
	array := make([]byte, 4)
	for _, o := range [][]byte{{2, 0}, {2, 0, '{'}, {9, byte(wire.Int32), 1, 2, 3, 4}} {
		err := elastic.Take(o, 7, wire.Int32, array)
		require.ErrorAs(t, err, new(*elastic.FailedError))
		require.ErrorContains(t, err, "call 7 failed on all members because of a member: its reason cannot be read")
		require.Equal(t, make([]byte, 4), array)
	}
	require.NoError(t, elastic.Take([]byte{1, byte(wire.Int32), 1, 2, 3, 4}, 7, wire.Int32, array))
	require.Equal(t, []byte{1, 2, 3, 4}, array)
}

// TestLargeOutcome: an outcome comes whole in pieces.
func TestLargeOutcome(t *testing.T) {
	outcome := make([]byte, 64<<20+5)
	for i := 0; i < len(outcome); i += 4099 {
		outcome[i] = byte(i>>8 ^ i>>16)
	}
	outcome[0] = 1
	c := &told{record: [6]uint64{0, 1, 0, 2, uint64(len(outcome)), 0}, outcome: outcome}
	last, err := elastic.Agree(t.Context(), c, 1)
	require.NoError(t, err)
	require.Equal(t, 64<<20, c.asked)
	require.True(t, bytes.Equal(outcome, last))
}
