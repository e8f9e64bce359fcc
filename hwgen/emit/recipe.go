package emit

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/sigurn/crc16"

	"tributary/driver/wire"
	"tributary/hwgen/plan"
)

// The job of a datasheet's recipe.
const (
	recipeToken = 1
	recipeEpoch = 1
)

// recipe is a card's first job, word by word: a script that a test executes.
type recipe struct {
	plan  *plan.Plan
	text  strings.Builder
	tag   uint16
	table *crc16.Table

	// chunk is the number of elements that are summed.
	chunk int

	// carried writes a packet as what carries it: a frame from or to the host of a port, or of the
	// owner. It is nil for a card whose packets have ports. The packet's elements are equal.
	carried func(kind wire.Kind, f fields, port int, element uint32, bits int) string
}

// recipeOwner is the place of the owner among the ports.
const recipeOwner = -1

// newRecipe returns the steps that set a job of two members up (of one, if the card has
// one port), sum one chunk, and finish. Member 0 sends ones, member 1 twos.
//
// A card with a register port has these lines; TUSER is the header as one number:
//
//	write   ADDRESS VALUE            # comment
//	send    pPORT TUSER [COUNT x ELEMENT]
//	receive pPORT TUSER [COUNT x ELEMENT]
//
// On a byte stream a line is a frame, its bytes in their order:
//
//	send    BYTES [COUNT x BYTES BYTES]
//	receive BYTES [COUNT x BYTES BYTES]
//
// So it is on Ethernet, without repetitions.
func newRecipe(p *plan.Plan) string {
	if p.Shell.Code == wire.ShellRoCE {
		return "" // its jobs need endpoints of RoCEv2
	}
	r := recipe{plan: p, table: crc16.MakeTable(crc16.CRC16_CCITT_FALSE), chunk: p.Chunk}
	members := min(2, p.Workers)
	switch {
	case p.Shell.Link:
		r.carried = r.linkFrame
	case p.Shell.Ethernet:
		r.carried = r.ethernetFrame
		r.chunk = p.Lanes
		r.resolve()
	}
	everyone := uint64(1)<<members - 1
	window := max(p.Window/p.Jobs, 1) // each of several jobs has room
	r.write(wire.RegOwner, recipeToken, "OWNER: a random number", true)
	r.write(wire.RegJobToken, recipeToken, "JOB_TOKEN: the same", true)
	r.write(wire.RegJobPorts, everyone, "JOB_PORTS: "+count(members, "member"), true)
	if p.Shell.Ethernet {
		r.stageMembers(members)
	}
	r.write(wire.RegJobChunk, uint64(r.chunk), "JOB_CHUNK: "+count(r.chunk, "element"), true)
	r.write(wire.RegJobWindow, uint64(window), "JOB_WINDOW: "+count(window, "chunk"), true)
	r.write(wire.RegJobDeadline, 0, "JOB_DEADLINE: none", true)
	r.write(wire.RegJobCommit, recipeEpoch<<32, fmt.Sprintf("JOB_COMMIT: job 0, epoch %d, first VID 0", recipeEpoch), false)

	one, two, sum := number(p.Format.FormatInfo, 1), number(p.Format.FormatInfo, 2), number(p.Result.FormatInfo, 3)
	switch {
	case members == 1:
		sum = number(p.Result.FormatInfo, 1)
	case p.Sum.Code == wire.SumMax:
		sum = number(p.Result.FormatInfo, 2)
	}
	for rank, element := range []uint32{one, two}[:members] {
		r.packet("send", rank, wire.KindData, fields{format: p.Format.Format, rank: rank, length: r.chunk}, element, p.ElemBits,
			fmt.Sprintf("data of rank %d, VID 0", rank))
	}
	result := fields{format: p.Result.Format, length: r.chunk, mask: everyone, receivers: everyone}
	if p.Shell.Ethernet {
		result.flags = uint8(recipeECN)
	}
	for port := range members {
		if port == 0 || !p.Shell.Link {
			r.packet("receive", port, wire.KindResult, result, sum, p.ResultBits, "the sum")
		}
	}
	for rank := range members {
		r.packet("send", rank, wire.KindFinish, fields{rank: rank, vid: 1}, 0, 0, fmt.Sprintf("finish of rank %d, VID 1", rank))
		r.packet("receive", rank, wire.KindStatus, fields{rank: rank, vid: 1}, 0, 0, "done")
	}
	return r.text.String()
}

// number returns 1, 2 or 3 in a format.
func number(f wire.FormatInfo, n uint32) uint32 {
	if f.Exp == 0 {
		return n
	}
	bias := uint32(1)<<(f.Exp-1) - 1
	return map[uint32]uint32{1: bias << f.Frac, 2: (bias + 1) << f.Frac, 3: (bias+1)<<f.Frac | 1<<(f.Frac-1)}[n]
}

// fields are the fields of a header that differ between the recipe's packets.
type fields struct {
	flags  uint8
	format wire.Format
	epoch  uint16
	rank   int
	vid    uint32
	length int

	mask, receivers uint64
}

// header returns a header's bytes, all that the table has.
func (f fields) header(kind wire.Kind) []byte {
	b := []byte{wire.Version | byte(kind)<<4, f.flags, 0, byte(f.format)}
	b = binary.LittleEndian.AppendUint16(b, f.epoch)
	b = append(b, byte(f.rank), 0)
	b = binary.LittleEndian.AppendUint32(b, f.vid)
	b = binary.LittleEndian.AppendUint16(b, uint16(f.length))
	b = binary.LittleEndian.AppendUint64(b, f.mask)
	return binary.LittleEndian.AppendUint64(b, f.receivers)
}

// line adds a line with a comment.
func (r *recipe) line(text, comment string) { fmt.Fprintf(&r.text, "%s  # %s\n", text, comment) }

// write adds a write to a register, and its reply if packets carry it; readable registers
// reply with their value.
func (r *recipe) write(addr uint32, value uint64, comment string, readable bool) {
	if r.carried == nil {
		r.line(fmt.Sprintf("write   0x%03x 0x%016x", addr, value), comment)
		return
	}
	f := fields{vid: addr, length: int(r.tag), mask: value}
	r.tag++
	r.line("send    "+r.carried(wire.KindRegWrite, f, recipeOwner, 0, 0), comment)
	if !readable {
		f.mask = 0
	}
	r.line("receive "+r.carried(wire.KindReply, f, recipeOwner, 0, 0), "done")
}

// packet adds a packet to or from a port, and its payload if it has elements.
func (r *recipe) packet(do string, port int, kind wire.Kind, f fields, element uint32, bits int, comment string) {
	f.epoch = recipeEpoch
	if r.carried != nil {
		r.line(fmt.Sprintf("%-7s %s", do, r.carried(kind, f, port, element, bits)), comment)
		return
	}
	size := wire.BaseHeaderBytes
	if info, _ := kind.Info(); info.FromCard {
		size = wire.MaskHeaderBytes
	}
	text := fmt.Sprintf("%-7s p%d 0x", do, port)
	header := f.header(kind)[:size]
	for i := range header {
		text += fmt.Sprintf("%02x", header[size-1-i])
	}
	if f.length > 0 {
		text += fmt.Sprintf(" %d x 0x%0*x", f.length, bits/4, element)
	}
	r.line(text, comment)
}

// linkFrame returns a frame on a byte stream, whichever port its packet is of: its header, and its
// payload as one element and their number.
func (r *recipe) linkFrame(kind wire.Kind, f fields, _ int, element uint32, bits int) string {
	header := r.sharedHeader(kind, f)
	text := fmt.Sprintf("%x%x%04x", wire.Sync[:], header, crc16.Checksum(header, r.table))
	if info, _ := kind.Info(); info.Payload {
		text += r.payload(kind, f, element, bits)
	}
	return text
}

// sharedHeader returns the header of a packet on a link or a network, where ports share what carries it.
func (r *recipe) sharedHeader(kind wire.Kind, f fields) []byte {
	info, _ := kind.Info()
	return f.header(kind)[:info.HeaderBytes(true)]
}

// payload returns equal elements and their CRC, in the order of a frame's bytes.
func (r *recipe) payload(kind wire.Kind, f fields, element uint32, bits int) string {
	one := binary.LittleEndian.AppendUint32(nil, element)[:bits/8]
	crc := crc16.Checksum(r.sharedHeader(kind, f), r.table)
	for range f.length {
		crc = crc16.Update(crc, one, r.table)
	}
	return fmt.Sprintf(" %d x %x %04x", f.length, one, crc)
}
