package daemon

import (
	"fmt"
	"math"

	"tributary/driver/daemon/protocol"
	"tributary/driver/wire"
)

// announced is a call that seats have announced, and the first of them to do so.
type announced struct {
	call *protocol.Call
	rank int
	end  uint32 // the VID after its chunks
}

// announce takes a seat's next call. It returns why the job ends, if the call differs from that of
// another seat, or an error that is the session's fault.
func (j *job) announce(s *seat, call *protocol.Call) (*protocol.Ended, error) {
	if call.Sequence != s.calls {
		return nil, fmt.Errorf("call %d of rank %d follows call %d", call.Sequence, s.rank, int64(s.calls)-1)
	}
	chunk := uint64(j.parameters.Chunk)
	if call.Elements == 0 || call.Elements > chunk<<31 {
		return nil, fmt.Errorf("call %d of rank %d has %d elements", call.Sequence, s.rank, call.Elements)
	}
	if call.FirstVid != s.next {
		return nil, fmt.Errorf("call %d of rank %d begins with chunk %d, not %d", call.Sequence, s.rank, call.FirstVid, s.next)
	}
	one, known := j.calls[call.Sequence]
	if most := j.card.server.limits.Calls; !known && len(j.calls) >= most {
		j.card.server.meters.limited.WithLabelValues(limitCalls).Inc()
		return nil, fmt.Errorf("rank %d announces call %d, and others have not announced the %d calls before", s.rank, call.Sequence, most)
	}
	if j.arrays != nil && len(j.arrays.per[s.rank].calls) >= j.card.server.limits.Calls {
		j.card.server.meters.limited.WithLabelValues(limitCalls).Inc()
		return nil, fmt.Errorf("rank %d announces call %d, and has not sent the blocks of the %d calls before", s.rank, call.Sequence, j.card.server.limits.Calls)
	}
	if !known {
		one = announced{call, s.rank, call.FirstVid + uint32((call.Elements+chunk-1)/chunk)}
		j.calls[call.Sequence] = one
	}
	if one.call.Elements != call.Elements || one.call.Format != call.Format || one.call.Operation != call.Operation {
		return &protocol.Ended{
			Nonce: j.nonce, Cause: protocol.Cause_CALLS_DIFFER, One: one.call, Other: call,
			Ranks: []uint32{uint32(one.rank), uint32(s.rank)},
			Text:  fmt.Sprintf("call %d: rank %d asks for %s, rank %d for %s", call.Sequence, one.rank, describe(one.call), s.rank, describe(call)),
		}, nil
	}
	s.calls, s.next = call.Sequence+1, one.end
	if j.arrays != nil {
		per := j.arrays.per[s.rank]
		per.calls = append(per.calls, call.Elements)
	}
	j.forgetCalls()
	j.agree()
	j.expectOthers()
	return nil, nil
}

// forgetCalls drops the calls that all seats have announced: no other call is compared with them.
func (j *job) forgetCalls() {
	least := ^uint64(0)
	for _, s := range j.seats {
		if j.takesPart(s) {
			least = min(least, s.calls)
		}
	}
	for sequence := range j.calls {
		if sequence < least {
			delete(j.calls, sequence)
		}
	}
}

// describe names what a call asks for. The numbers are the client's: they may have no name, and a format
// may not fit into its type.
func describe(c *protocol.Call) string {
	return fmt.Sprintf("the %s of %d elements of %s", word(c.Operation.String()), c.Elements, wire.Format(min(c.Format, math.MaxUint8)))
}
