// A card whose traffic is written in short lines, for the tests of its rules; payloads, and
// counters by name.

package model

import (
	"encoding/binary"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tributary/driver/wire"
)

// words returns the payload of fp32 encodings.
func words(elements ...uint32) []byte {
	var b []byte
	for _, e := range elements {
		b = binary.LittleEndian.AppendUint32(b, e)
	}
	return b
}

// elements returns the fp32 encodings of a payload.
func elements(payload []byte) []uint32 {
	var e []uint32
	for ; len(payload) >= 4; payload = payload[4:] {
		e = append(e, binary.LittleEndian.Uint32(payload))
	}
	return e
}

// counterAddr returns the register address of a counter.
func counterAddr(name string) uint32 {
	for i, c := range wire.Counters {
		if c.Name == name {
			return wire.CounterAddr(i)
		}
	}
	panic("no counter " + name)
}

// harness is one job of a card without a shell. The card has 4 ports, one lane, 8 slots, and chunks of
// at most 4 elements.
type harness struct {
	*testing.T
	card   *Card
	number uint8
	job    setup
	now    uint16 // the epoch that packets carry
}

// newHarness returns the harness of a card with one job.
func newHarness(t *testing.T) *harness {
	t.Helper()
	return newHarnesses(t, 1)[0]
}

// newHarnesses returns the harnesses of a card, one per job.
func newHarnesses(t *testing.T, jobs int) []*harness {
	t.Helper()
	card, err := NewCard(Config{Lanes: 1, Ports: 4, Chunk: 4, Window: 4, Jobs: jobs})
	require.NoError(t, err)
	var harnesses []*harness
	for number := range jobs {
		harnesses = append(harnesses, &harness{T: t, card: card, number: uint8(number)})
	}
	return harnesses
}

// owner is the token of the harness's host.
const owner = 0x1234_5678_9abc_def0

// stage writes the registers for a commit.
func (d *harness) stage(s setup) {
	d.write(wire.RegJobToken, owner)
	d.write(wire.RegJobPorts, s.ports)
	d.write(wire.RegJobChunk, s.chunk)
	d.write(wire.RegJobWindow, s.window)
	d.write(wire.RegJobDeadline, s.deadline)
	if s.upward != (upward{}) {
		d.stageUpward(s.upward)
	}
}

// setUp owns the card and sets the job up.
func (d *harness) setUp(epoch uint16, s setup) {
	d.Helper()
	require.Equal(d, wire.CodeDone, d.trySetUp(epoch, s))
}

// trySetUp owns the card and sets the job up, unless that is refused.
func (d *harness) trySetUp(epoch uint16, s setup) wire.Code {
	d.write(wire.RegOwner, owner)
	d.stage(s)
	code := d.commit(epoch, s.first)
	if code == wire.CodeDone {
		d.job, d.now = s, epoch
	}
	return code
}

func (d *harness) write(addr uint32, value uint64) wire.Code {
	code, _ := d.card.Register(true, addr, value)
	return code
}

// read reads a register; if each job has one, the harness's.
func (d *harness) read(addr uint32) uint64 {
	if addr >= wire.JobBase {
		addr = wire.JobAddr(addr, int(d.number))
	}
	_, value := d.card.Register(false, addr, 0)
	return value
}

func (d *harness) commit(epoch uint16, first uint32) wire.Code {
	return d.write(wire.RegJobCommit, uint64(d.number)<<48|uint64(epoch)<<32|uint64(first))
}

func (d *harness) abort(epoch uint16) wire.Code {
	return d.write(wire.RegJobAbort, uint64(d.number)<<48|uint64(epoch)<<32)
}

// count reads a counter.
func (d *harness) count(name string) int { return int(d.read(counterAddr(name))) }

// packet returns a packet of the harness's job without payload.
func (d *harness) packet(kind wire.Kind, rank uint8, vid uint32) Packet {
	return Packet{Header: Header{Version: wire.Version, Kind: kind, Job: d.number, Epoch: d.now, Rank: rank, VID: vid}}
}

// chunk returns a data packet of the harness's job; every element is x.
func (d *harness) chunk(rank uint8, vid uint32, x float32) Packet {
	p := d.packet(wire.KindData, rank, vid)
	p.Format, p.Length = wire.FP32, uint16(d.job.chunk)
	for range d.job.chunk {
		p.Payload = append(p.Payload, words(f(x))...)
	}
	return p
}

// in passes a packet to the port of its rank, late enough for a refusal to be answered.
func (d *harness) in(p Packet) {
	d.card.Advance(1024)
	port, _ := d.card.PortOf(p.Job, p.Rank)
	d.card.Handle(port, &p)
}

func (d *harness) data(rank uint8, vid uint32, x float32) { d.in(d.chunk(rank, vid, x)) }
func (d *harness) ask(rank uint8, vid uint32)             { d.in(d.packet(wire.KindAsk, rank, vid)) }
func (d *harness) finish(rank uint8, vid uint32)          { d.in(d.packet(wire.KindFinish, rank, vid)) }

// line describes a sent packet: "result v5 to 3 = 2.5" (receivers are a mask, the value is the
// first element), "status late v5 to rank 1, missing 0".
func line(p *Packet) string {
	if p.Kind == wire.KindStatus {
		return fmt.Sprintf("status %v v%d to rank %d, missing %x", p.Code, p.VID, p.Rank, p.Mask)
	}
	return fmt.Sprintf("%v v%d to %x = %v", p.Kind, p.VID, p.Receivers, math.Float32frombits(elements(p.Payload)[0]))
}

// out returns the packets that leave while only the ports in ready can take packets, one line each.
// All must belong to the harness's job.
func (d *harness) out(ready uint64) []string {
	lines := []string{}
	var p Packet
	for {
		ports, ok := d.card.Next(ready, &p)
		if !ok {
			return lines
		}
		require.Zero(d, ports&^ready, "a port that cannot take a packet")
		require.EqualValues(d, wire.Version, p.Version)
		require.Equal(d, d.number, p.Job)
		require.Equal(d, d.now, p.Epoch)
		if p.Kind != wire.KindStatus {
			require.Len(d, p.Payload, 4*int(d.job.chunk))
		}
		lines = append(lines, line(&p))
	}
}

// sends checks the packets that leave while all ports are ready.
func (d *harness) sends(lines ...string) {
	d.Helper()
	if lines == nil {
		lines = []string{}
	}
	assert.Equal(d, lines, d.out(AllPorts))
}
