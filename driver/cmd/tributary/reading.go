package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"tributary/driver"
	"tributary/driver/wire"
)

// reading holds the registers of a card at one time.
type reading struct {
	Time    time.Time `json:"time"`
	Seconds float64   `json:"seconds"` // since the last reading; 0 for the first
	Host    *host     `json:"host"`    // that provided it; null for the card itself
	infoReport
	CyclesPerSecond *float64      `json:"cycles_per_second,omitempty"`
	Owner           string        `json:"owner"`  // the token, hexadecimal; empty without a host
	Staged          stagedJob     `json:"staged"` // latest
	Counters        []counterRate `json:"counters"`
}

// stagedJob is the latest staged set-up: the running job's, unless its commit was refused.
type stagedJob struct {
	Ports  []int  `json:"ports"`
	Chunk  uint64 `json:"chunk"`  // elements
	Window uint64 `json:"window"` // chunks

	Deadline uint64 `json:"deadline"` // cycles; 0: none
	Partial  bool   `json:"partial"`  // sums after the deadline
}

// counterRate is a counter and its rate.
type counterRate struct {
	Name      string   `json:"name"`
	Value     uint32   `json:"value"`
	PerSecond *float64 `json:"per_second,omitempty"` // omitted in the first reading
}

// takeReading reads a card; last is the last reading, nil for the first.
func takeReading(ctx context.Context, card *driver.Card, last *reading) (*reading, error) {
	now := time.Now()
	info, err := readInfo(ctx, card, func(s driver.JobState) bool { return s.SetUp })
	if err != nil {
		return nil, err
	}
	r := &reading{Time: now, infoReport: *info}
	var owner, ports, deadline uint64
	for _, from := range []struct {
		addr uint32
		to   *uint64
	}{
		{wire.RegOwner, &owner},
		{wire.RegJobPorts, &ports},
		{wire.RegJobChunk, &r.Staged.Chunk},
		{wire.RegJobWindow, &r.Staged.Window},
		{wire.RegJobDeadline, &deadline},
	} {
		if *from.to, err = card.ReadRegister(ctx, from.addr); err != nil {
			return nil, err
		}
	}
	if owner != 0 {
		r.Owner = fmt.Sprintf("%016x", owner)
	}
	r.Staged.Ports = rankList(ports)
	r.Staged.Deadline, r.Staged.Partial = deadline&(1<<32-1), deadline>>32&1 != 0
	for _, c := range info.Counters {
		r.Counters = append(r.Counters, counterRate{Name: c.Name, Value: c.Value})
	}
	if last != nil {
		r.rates(last)
	}
	return r, nil
}

// rates computes the rates since the last reading.
func (r *reading) rates(last *reading) {
	r.Seconds = r.Time.Sub(last.Time).Seconds()
	perSecond := func(rise uint64) *float64 {
		rate := float64(rise) / r.Seconds
		return &rate
	}
	if r.Cycles >= last.Cycles {
		r.CyclesPerSecond = perSecond(r.Cycles - last.Cycles)
	}
	for i, c := range r.Counters {
		r.Counters[i].PerSecond = perSecond(uint64(rise(last.Counters[i].Value, c.Value)))
	}
}

// rise returns the increase of a counter, which may have wrapped. A counter that decreased from its
// lower half was cleared.
func rise(from, to uint32) uint32 {
	if to < from && from < 1<<31 {
		return to
	}
	return to - from
}

// lines returns a reading as text of 80 columns, except for long names; some 25 lines for a card
// with one job.
func (r *reading) lines(status string) []string {
	link := fmt.Sprintf("%s, %d bits a cycle", r.Shell, r.Link)
	lines := []string{
		"card    " + r.Card,
		fmt.Sprintf("        %d lanes x %d ports, %s, sum %s%s; %s", r.Lanes, r.Ports, formats(r.Format, r.Result), r.Sum, r.atTheEnds(), link),
		"read    " + status,
		fmt.Sprintf("clock   %d cycles%s; owner: %s", r.Cycles, r.clockRate(), r.ownerWords()),
	}
	for _, j := range r.JobStates {
		lines = append(lines, fmt.Sprintf("job %-3d %s", j.Number, j))
		lines = append(lines, j.lateLines()...)
		if r.Jobs == 1 || j.metAny() {
			lines = append(lines, fmt.Sprintf("  seen  NaN or infinity: %d chunks in, %d elements out; overflows: %d", j.NonfiniteIn.Count, j.NonfiniteOut.Count, j.Overflow.Count))
		}
	}
	lines = append(lines, "staged  "+r.Staged.String())
	return append(lines, r.columns()...)
}

// metAny reports whether the job had NaNs, infinities or overflows.
func (s jobState) metAny() bool {
	return s.NonfiniteIn.Count|s.NonfiniteOut.Count|s.Overflow.Count != 0
}

// columns returns the counters, side by side in two columns.
func (r *reading) columns() []string {
	head := fmt.Sprintf("%-13s %10s %10s", "counter", "value", "a second")
	left := (len(r.Counters) + 1) / 2
	lines := []string{head + "     " + head}
	for i, c := range r.Counters[:left] {
		line := c.String()
		if left+i < len(r.Counters) {
			line += "     " + r.Counters[left+i].String()
		}
		lines = append(lines, strings.TrimRight(line, " "))
	}
	return lines
}

func (c counterRate) String() string {
	rate := ""
	if c.PerSecond != nil {
		rate = shortRate(*c.PerSecond)
	}
	return fmt.Sprintf("%-13s %10d %10s", c.Name, c.Value, rate)
}

func (r *reading) clockRate() string {
	if r.CyclesPerSecond == nil {
		return ""
	}
	return ", " + shortRate(*r.CyclesPerSecond) + " a second"
}

func (r *reading) ownerWords() string {
	if r.Owner == "" {
		return "none"
	}
	return "token " + r.Owner
}

func (s stagedJob) String() string {
	if len(s.Ports) == 0 {
		return "nothing"
	}
	text := fmt.Sprintf("ports %s, chunks of %d elements, %d in flight", runs(s.Ports), s.Chunk, s.Window)
	if s.Deadline > 0 {
		text += fmt.Sprintf(", deadline %s cycles", shortRate(float64(s.Deadline)))
	}
	if s.Partial {
		text += ", partial"
	}
	return text
}

// shortRate formats a rate in at most 7 columns.
func shortRate(x float64) string {
	unit := ""
	for _, u := range []string{"k", "M", "G"} {
		if x < 1000 {
			break
		}
		x, unit = x/1000, " "+u
	}
	if x == 0 || x >= 100 {
		return strconv.FormatFloat(x, 'f', 0, 64) + unit
	}
	return strconv.FormatFloat(x, 'f', 1, 64) + unit
}
