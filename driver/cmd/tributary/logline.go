package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"tributary/driver/frame"
	"tributary/driver/wire"
)

// showText prints a line of a link log for people.
func showText(out io.Writer, l logLine) error {
	arrow := "->"
	if l.fromCard {
		arrow = "<-"
	}
	what := ""
	if l.frame != nil {
		what = describeFrame(l.frame)
	} else {
		what = "** " + describeDamage(l)
	}
	if l.congested {
		what += ", congestion"
	}
	_, err := fmt.Fprintf(out, "%12.6f %s %s\n", l.at.Seconds(), arrow, what)
	return err
}

// describeFrame describes a frame.
func describeFrame(h *frame.Header) string {
	head := fmt.Sprintf("%-8s", h.Kind)
	job := fmt.Sprintf("job %d epoch %d", h.Job, h.Epoch)
	switch h.Kind {
	case wire.KindData:
		return fmt.Sprintf("%s %s rank %d vid %d: %d %s%s", head, job, h.Rank, h.VID, h.Length, h.Format.String(), marks(h.Flags))
	case wire.KindAsk, wire.KindFinish:
		return fmt.Sprintf("%s %s rank %d vid %d", head, job, h.Rank, h.VID)
	case wire.KindRegRead:
		return fmt.Sprintf("%s %s (tag %d)", head, registerName(h.VID), h.Length)
	case wire.KindRegWrite:
		return fmt.Sprintf("%s %s = %#x (tag %d)", head, registerName(h.VID), h.Mask, h.Length)
	case wire.KindReply:
		return fmt.Sprintf("%s %s = %#x, %s (tag %d)", head, registerName(h.VID), h.Mask, h.Code, h.Length)
	case wire.KindStatus:
		s := fmt.Sprintf("%s %s rank %d vid %d: %s", head, job, h.Rank, h.VID, h.Code)
		switch {
		case h.Mask != 0 && h.Code == wire.CodeEvicted:
			s += ", all in all " + ranks(h.Mask)
		case h.Mask != 0:
			s += ", missing " + ranks(h.Mask)
		}
		return s
	}
	return fmt.Sprintf("%s %s vid %d: %d %s of %s, for %s%s", head, job, h.VID, h.Length, h.Format.String(), ranks(h.Mask), ranks(h.Receivers), marks(h.Flags))
}

// marks names a packet's flags.
func marks(flags uint8) string {
	s := ""
	switch wire.ECN(flags & wire.FlagECN) {
	case wire.CE:
		s += ", CE"
	case wire.ECT0:
		s += ", ECT(0)"
	case wire.ECT1:
		s += ", ECT(1)"
	}
	if flags&wire.FlagPartial != 0 {
		s += ", partial"
	}
	if flags&wire.FlagNonfinite != 0 {
		s += ", not finite"
	}
	return s
}

// rankList returns the ranks in a mask.
func rankList(mask uint64) []int {
	list := []int{}
	for ; mask != 0; mask &= mask - 1 {
		list = append(list, bits.TrailingZeros64(mask))
	}
	return list
}

// ranks names the ranks in a mask: "rank 3", "ranks 0-3,7", "no rank".
func ranks(mask uint64) string {
	list := rankList(mask)
	switch len(list) {
	case 0:
		return "no rank"
	case 1:
		return "rank " + strconv.Itoa(list[0])
	}
	return "ranks " + runs(list)
}

// runs formats ascending numbers: "0-3,7".
func runs(list []int) string {
	var parts []string
	for i := 0; i < len(list); {
		j := i
		for j+1 < len(list) && list[j+1] == list[j]+1 {
			j++
		}
		run := strconv.Itoa(list[i])
		if j > i {
			run += "-" + strconv.Itoa(list[j])
		}
		parts = append(parts, run)
		i = j + 1
	}
	return strings.Join(parts, ",")
}

// registerName returns the name of the register at an address. For a register that each job has, it
// includes the job's number, except for job 0.
func registerName(addr uint32) string {
	name, job := jobsRegister(addr)
	if job != nil && *job > 0 {
		return fmt.Sprintf("%s of job %d", name, *job)
	}
	return name
}

// jobsRegister returns the name of the register at an address, and the number of its job; nil if
// the register is the card's.
func jobsRegister(addr uint32) (name string, job *uint8) {
	if of, rank, bucket, ok := wire.SplitLagAddr(addr); ok {
		n := uint8(of)
		return fmt.Sprintf("JOB_LAG %d of rank %d", bucket, rank), &n
	}
	if of0, of, port, ok := wire.SplitTableAddr(addr); ok {
		n := uint8(of)
		return fmt.Sprintf("%s of port %d", cardsRegister(of0), port), &n
	}
	if of0, port, ok := wire.SplitMemberAddr(addr); ok {
		return fmt.Sprintf("%s of port %d", cardsRegister(of0), port), nil
	}
	if of, port, ok := wire.SplitJobRanksAddr(addr); ok {
		n := uint8(of)
		return fmt.Sprintf("JOB_RANKS of port %d", port), &n
	}
	if port, ok := wire.SplitRanksAddr(addr); ok {
		return fmt.Sprintf("MEMBER_RANKS of port %d", port), nil
	}
	of0, number := wire.SplitJobAddr(addr)
	for _, r := range slices.Concat(wire.Registers, wire.TreeRegisters) {
		if r.Addr == of0 && r.PerJob() {
			n := uint8(number)
			return r.Name, &n
		}
	}
	return cardsRegister(addr), nil
}

// cardsRegister returns the name of a register that is not a job's.
func cardsRegister(addr uint32) string {
	for _, r := range slices.Concat(wire.Registers, wire.NetworkRegisters, wire.TreeRegisters, wire.ConnectionRegisters) {
		if r.Addr == addr {
			return r.Name
		}
	}
	for i, c := range wire.CountersOf(wire.ShellRoCE) {
		if wire.CounterAddr(i) == addr {
			return "COUNT_" + strings.ToUpper(c.Name)
		}
	}
	for i, c := range wire.UpCounters {
		if wire.UpCounterAddr(i) == addr {
			return "COUNT_" + strings.ToUpper(c.Name)
		}
	}
	return fmt.Sprintf("register %#x", addr)
}

// describeDamage describes bytes without a good frame, or a datagram that is none.
func describeDamage(l logLine) string {
	d, p := l.damage, l.dropped
	var parts []string
	for _, p := range []struct {
		n    uint64
		what string
	}{
		{d.HeaderCRC, "header with a wrong CRC"},
		{d.PayloadCRC, "payload with a wrong CRC"},
		{d.BadVersion, "header of another version"},
		{d.BadKind, "header of a kind that does not go this way"},
		{d.BadLength, "header with an impossible length"},
		{d.Hunted, "byte passed over"},
		{p.Short, "datagram that is too short"},
		{p.CRC, "datagram with a wrong CRC"},
		{p.BadVersion, "datagram of another version"},
		{p.BadKind, "datagram of a kind that does not go this way"},
		{p.BadLength, "datagram with an impossible length"},
	} {
		switch {
		case p.n == 1:
			parts = append(parts, "1 "+p.what)
		case p.n > 1:
			noun, rest, _ := strings.Cut(p.what, " ")
			parts = append(parts, fmt.Sprintf("%d %ss %s", p.n, noun, rest))
		}
	}
	return strings.Join(parts, ", ")
}

// lineJSON is a line of a link log for scripts. It omits fields that the kind does not have.
type lineJSON struct {
	Seconds   float64        `json:"seconds"`
	FromCard  bool           `json:"from_card"`
	Kind      string         `json:"kind"` // "damage" if there is no frame
	Job       *uint8         `json:"job,omitempty"`
	Epoch     *uint16        `json:"epoch,omitempty"`
	Rank      *uint8         `json:"rank,omitempty"`
	VID       *uint32        `json:"vid,omitempty"`
	Code      string         `json:"code,omitempty"`
	Format    string         `json:"format,omitempty"`
	Length    *uint16        `json:"length,omitempty"` // elements
	Flags     *uint8         `json:"flags,omitempty"`
	Congested bool           `json:"congested,omitempty"` // CE in the IP header of a datagram from the card
	Ranks     []int          `json:"ranks,omitempty"`     // in the sum, missing, or evicted
	Receivers []int          `json:"receivers,omitempty"` // ranks
	Register  string         `json:"register,omitempty"`
	Tag       *uint16        `json:"tag,omitempty"`
	Value     string         `json:"value,omitempty"` // of a register, hexadecimal
	Damage    map[string]int `json:"damage,omitempty"`
}

// showJSON prints a line of a link log for scripts.
func showJSON(out io.Writer, l logLine) error {
	j := lineJSON{Seconds: l.at.Seconds(), FromCard: l.fromCard, Congested: l.congested}
	if l.frame == nil {
		j.Kind, j.Damage = "damage", damageCounts(l)
	} else {
		j.fill(l.frame)
	}
	return json.NewEncoder(out).Encode(j)
}

// fill sets the fields of the frame's kind.
func (j *lineJSON) fill(h *frame.Header) {
	j.Kind = h.Kind.String()
	switch h.Kind {
	case wire.KindRegRead, wire.KindRegWrite, wire.KindReply:
		j.Register, j.Job = jobsRegister(h.VID)
		j.Tag = &h.Length
		if h.Kind != wire.KindRegRead {
			j.Value = fmt.Sprintf("%#x", h.Mask)
		}
		if h.Kind == wire.KindReply {
			j.Code = h.Code.String()
		}
		return
	}
	j.Job, j.Epoch, j.VID = &h.Job, &h.Epoch, &h.VID
	info, _ := h.Kind.Info()
	if info.Payload {
		j.Format, j.Length, j.Flags = h.Format.String(), &h.Length, &h.Flags
	}
	if !info.Receivers {
		j.Rank = &h.Rank
	}
	if info.Mask {
		j.Ranks = rankList(h.Mask)
	}
	if info.Receivers {
		j.Receivers = rankList(h.Receivers)
	}
	if h.Kind == wire.KindStatus {
		j.Code = h.Code.String()
	}
}

// damageCounts names the counts like the card's counters.
func damageCounts(l logLine) map[string]int {
	d, p := l.damage, l.dropped
	counts := map[string]int{}
	for name, n := range map[string]uint64{
		"hunted": d.Hunted, "header_crc": d.HeaderCRC, "payload_crc": d.PayloadCRC, "short": p.Short, "datagram_crc": p.CRC,
		"bad_version": d.BadVersion + p.BadVersion, "bad_kind": d.BadKind + p.BadKind, "bad_length": d.BadLength + p.BadLength,
	} {
		if n > 0 {
			counts[name] = int(n)
		}
	}
	return counts
}
