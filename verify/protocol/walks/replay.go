package walks

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"tributary/driver/model"
	"tributary/driver/wire"
)

// token owns the card.
const token = 0x1badcafe

// Difference is the first event where a card differs from the explorer.
type Difference struct {
	Walk  *Walk
	Place int // of the event
	What  string
}

func (d *Difference) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "walk %d: jobs of the ports %b, W = %d, deadline %d, partial sums %v\n", d.Walk.Seed, d.Walk.Members, d.Walk.Window,
		d.Walk.Deadline, d.Walk.Partial)
	for i, e := range d.Walk.Events[:d.Place+1] {
		fmt.Fprintf(&b, "%3d  %s: %s\n", i, e.text(), strings.Join(e.Says, "; "))
	}
	return b.String() + d.What
}

// text describes the event.
func (e *Event) text() string {
	switch e.Do {
	case "reset", "end":
		return e.Do
	case "together":
		var texts []string
		for i := range e.Packets {
			texts = append(texts, e.Packets[i].text())
		}
		return "at once " + strings.Join(texts, "; ")
	case "commit", "abort", "deadline":
		return fmt.Sprintf("%s, job %d, epoch %d, VID %d", e.Do, e.Job, e.Epoch, e.VID)
	}
	return fmt.Sprintf("%s by port %d, job %d, epoch %d, rank %d, VID %d", e.Do, e.Port, e.Job, e.Epoch, e.Rank, e.VID)
}

// replay is a walk on its way through a card.
type replay struct {
	*Walk
	card   Card
	began  uint64
	counts map[string]int // expected values of the card's counters
	left   map[string]int // counts since the last reset of packets that the card did not get
}

// Replay sends a walk to a card after its hard reset. It returns a *Difference when the card
// differs from the explorer. It counts events, answers and packets in heard, unless heard is nil.
func Replay(card Card, w *Walk, heard map[string]int) error {
	r := &replay{Walk: w, card: card, began: card.Now(), counts: map[string]int{}, left: map[string]int{}}
	for i := range w.Events {
		what, err := r.take(&w.Events[i], heard)
		if err != nil {
			return fmt.Errorf("walk %d, event %d, %s: %w", w.Seed, i, w.Events[i].text(), err)
		}
		if what != "" {
			return &Difference{Walk: w, Place: i, What: what}
		}
	}
	return nil
}

// take makes an event happen, and describes the difference, if any.
func (r *replay) take(e *Event, heard map[string]int) (what string, err error) {
	if r.cannotTravel(e) {
		r.left[counterOf(e)]++
		return "", nil
	}
	sent, err := r.card.Until(r.began + uint64(e.At))
	if err != nil {
		return "", err
	}
	if len(sent) > 0 {
		return "unasked, the card sends\n" + lines(r.texts(sent)), nil
	}
	if what, err = r.do(e); what != "" || err != nil {
		return what, err
	}
	if sent, err = r.card.Until(r.began + uint64(e.At+r.Settled)); err != nil {
		return "", err
	}
	if got, want := lines(r.texts(sent)), lines(r.wanted(e)); got != want {
		return fmt.Sprintf("it should send\n%sand sends\n%s", want, got), nil
	}
	if heard != nil {
		heard[e.Do]++
		heard[e.Answer]++
		for i := range e.Packets {
			heard["together: "+e.Packets[i].Answer]++
		}
		for _, s := range e.Sent {
			heard[strings.TrimSpace(s.Kind+" "+s.Code)]++
		}
		if slices.ContainsFunc(e.Says, func(s string) bool { return strings.HasPrefix(s, "no member is left") }) {
			heard["no member is left"]++
		}
	}
	if what, err = r.compareCounts(e); what != "" || err != nil {
		return what, err
	}
	return r.compareJobs(e)
}

// cannotTravel reports whether a packet arrives on a port that its rank does not belong to. On a
// shared link the rank selects the port, so that cannot happen. A card only counts such a packet.
func (r *replay) cannotTravel(e *Event) bool {
	if !r.card.Shared() || e.Do != "data" && e.Do != "ask" && e.Do != "finish" {
		return false
	}
	port, ok := portOf(r.Members[e.Job], e.Rank)
	return ok && port != e.Port
}

// do makes an event happen.
func (r *replay) do(e *Event) (what string, err error) {
	switch e.Do {
	case "commit":
		return r.commit(e)
	case "abort":
		return r.abort(e)
	case "reset":
		r.counts, r.left = map[string]int{}, map[string]int{}
		return r.write(wire.RegReset, token, "done")
	case "together":
		for i := range e.Packets {
			if err := r.card.Send(e.Packets[i].Port, r.packet(&e.Packets[i])); err != nil {
				return "", err
			}
		}
		return "", nil
	case "deadline", "end":
		return "", nil // they come by themselves
	}
	return "", r.card.Send(e.Port, r.packet(e))
}

// commit owns the card, stages a job and commits it.
func (r *replay) commit(e *Event) (what string, err error) {
	deadline := uint64(r.Deadline)
	if r.Partial {
		deadline |= 1 << 32
	}
	for _, stage := range []struct {
		addr  uint32
		value uint64
	}{
		{wire.RegOwner, token}, {wire.RegJobToken, token}, {wire.RegJobPorts, r.Members[e.Job]}, {wire.RegJobChunk, cardChunk},
		{wire.RegJobWindow, uint64(r.Window)}, {wire.RegJobDeadline, deadline},
	} {
		if what, err = r.write(stage.addr, stage.value, "done"); what != "" || err != nil {
			return what, err
		}
	}
	return r.write(wire.RegJobCommit, uint64(e.Job)<<48|uint64(e.Epoch)<<32|uint64(e.VID), e.Answer)
}

// abort owns the card, which may have been reset, and aborts a job.
func (r *replay) abort(e *Event) (what string, err error) {
	for _, own := range []uint32{wire.RegOwner, wire.RegJobToken} {
		if what, err = r.write(own, token, "done"); what != "" || err != nil {
			return what, err
		}
	}
	return r.write(wire.RegJobAbort, uint64(e.Job)<<48|uint64(e.Epoch)<<32, e.Answer)
}

// write writes a register, and describes the difference if the reply is not want.
func (r *replay) write(addr uint32, value uint64, want string) (what string, err error) {
	code, _, err := r.card.Register(true, addr, value)
	if got := wire.Code(code).String(); err == nil && got != want {
		return fmt.Sprintf("the reply should be %s, and is %s", want, got), nil
	}
	return "", err
}

// packet returns the packet of an event.
func (r *replay) packet(e *Event) *model.Packet {
	kinds := map[string]wire.Kind{"data": wire.KindData, "ask": wire.KindAsk, "finish": wire.KindFinish}
	p := &model.Packet{Header: model.Header{Version: wire.Version, Kind: kinds[e.Do], Job: uint8(e.Job), Epoch: e.Epoch, Rank: e.Rank, VID: e.VID}}
	if e.Do == "data" {
		p.Format, p.Length, p.Payload = wire.Int32, cardChunk, payload([]Tag{e.Tag})
	}
	return p
}

// payload is the sum of contributions, from which each can be read back. A contribution has its
// number in its sender's element, and 1 in its sender's byte of the last element.
func payload(tags []Tag) []byte {
	var elements [cardChunk]uint32
	for _, t := range tags {
		elements[t.From] += uint32(t.Number)
		elements[cardChunk-1] += 1 << (8 * t.From)
	}
	var b []byte
	for _, e := range elements {
		b = binary.LittleEndian.AppendUint32(b, e)
	}
	return b
}

// wanted returns the packets that an event must cause.
func (r *replay) wanted(e *Event) []string {
	var texts []string
	for _, s := range e.Sent {
		p := model.Packet{Header: model.Header{Version: wire.Version, Job: uint8(s.Job), Epoch: s.Epoch, Rank: s.Rank, VID: s.VID, Mask: s.Mask}}
		switch s.Kind {
		case "status":
			p.Kind, p.Code = wire.KindStatus, codeOf(s.Code)
		default:
			p.Kind, p.Format, p.Length, p.Payload = wire.KindResult, wire.Int32, cardChunk, payload(s.Tags)
			if s.Kind == "replay" {
				p.Kind = wire.KindReplay
			}
			if s.Mask != lowBits(bits.OnesCount64(r.Members[s.Job])) {
				p.Flags = wire.FlagPartial
			}
		}
		texts = append(texts, text(&p, s.Rank))
	}
	slices.Sort(texts)
	return texts
}

// texts returns the sent packets as text, once for every receiver. They are sorted, so that their
// order is not compared.
func (r *replay) texts(sent []model.Packet) []string {
	var texts []string
	for i := range sent {
		p := &sent[i]
		if p.Kind == wire.KindStatus {
			texts = append(texts, text(p, p.Rank))
			continue
		}
		if int(p.Job) >= len(r.Members) || p.Rank != 0 {
			texts = append(texts, fmt.Sprintf("%+v", *p))
			continue
		}
		for rank := range uint8(bits.OnesCount64(r.Members[p.Job])) {
			at := int(rank)
			if !r.card.Shared() {
				at, _ = portOf(r.Members[p.Job], rank)
			}
			if p.Receivers>>at&1 != 0 {
				texts = append(texts, text(p, rank))
			}
		}
	}
	slices.Sort(texts)
	return texts
}

// text formats a packet to a rank, without its other receivers.
func text(p *model.Packet, rank uint8) string {
	return fmt.Sprintf("%s %s, job %d, epoch %d, to rank %d, VID %d, mask %b, flags %x, format %d, length %d, %x\n",
		p.Kind, p.Code, p.Job, p.Epoch, rank, p.VID, p.Mask, p.Flags, p.Format, p.Length, p.Payload)
}

func lines(texts []string) string {
	if len(texts) == 0 {
		return "nothing\n"
	}
	return strings.Join(texts, "")
}

// counterOf returns the name of the counter that an event's packet increments.
func counterOf(e *Event) string {
	switch {
	case e.Do == "ask" && (e.Answer == "owes" || e.Answer == "under_way" || e.Answer == "wait" || e.Answer == "send"):
		return "asks"
	case e.Do == "finish" && e.Answer == "done":
		return "finishes"
	case e.Answer == "owes":
		return "duplicate"
	}
	return e.Answer
}

// compareCounts compares the counters of an event's packets, and all counters at the end.
func (r *replay) compareCounts(e *Event) (what string, err error) {
	switch e.Do {
	case "data", "ask", "finish":
		name := counterOf(e)
		r.counts[name]++
		return r.compareCount(name, r.counts[name])
	case "together":
		for i := range e.Packets {
			r.counts[counterOf(&e.Packets[i])]++
		}
		for i := range e.Packets {
			name := counterOf(&e.Packets[i])
			if what, err = r.compareCount(name, r.counts[name]); what != "" || err != nil {
				return what, err
			}
		}
	case "end":
		for name, n := range e.Counts {
			if what, err = r.compareCount(name, n-r.left[name]); what != "" || err != nil {
				return what, err
			}
		}
	}
	return "", nil
}

func (r *replay) compareCount(name string, want int) (what string, err error) {
	for i, c := range wire.Counters {
		if c.Name != name {
			continue
		}
		_, got, err := r.card.Register(false, wire.CounterAddr(i), 0)
		if err == nil && got != uint64(want) {
			return fmt.Sprintf("the counter %s should be %d, and is %d", name, want, got), nil
		}
		return "", err
	}
	return "", fmt.Errorf("there is no counter %s", name)
}

// compareJobs compares the registers of the jobs.
func (r *replay) compareJobs(e *Event) (what string, err error) {
	for number, want := range e.Jobs {
		var values [3]uint64
		for i, addr := range []uint32{wire.RegJobState, wire.RegJobFinished, wire.RegJobEvicted} {
			if _, values[i], err = r.card.Register(false, wire.JobAddr(addr, number), 0); err != nil {
				return "", err
			}
		}
		if values[0]>>1&1 == 0 {
			continue // before the first commit
		}
		got := JobState{Up: values[0]&1 != 0, Epoch: uint16(values[0] >> 16), Finished: values[1], Evicted: values[2]}
		if got != want {
			return fmt.Sprintf("job %d should be %+v, and is %+v", number, want, got), nil
		}
	}
	return "", nil
}

// portOf returns the port of a rank in a job with these ports, or false if there is none.
func portOf(ports uint64, rank uint8) (port int, ok bool) {
	for ; ports != 0; ports &= ports - 1 {
		if rank == 0 {
			return bits.TrailingZeros64(ports), true
		}
		rank--
	}
	return 0, false
}

// codeOf returns the code with a name. Walks use the names of wire.Codes.
func codeOf(name string) wire.Code {
	for _, c := range wire.Codes {
		if c.Name == name {
			return c.Code
		}
	}
	panic("walks: no code is called " + name)
}

func lowBits(n int) uint64 { return 1<<n - 1 }
