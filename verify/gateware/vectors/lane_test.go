package vectors

import (
	"errors"
	"strings"
	"testing"

	"tributary/driver/wire"
)

func TestParseLane(t *testing.T) {
	for _, l := range []Lane{
		{Sum: wire.SumTree, Format: wire.FP32, Result: wire.FP32, Ports: 8},
		{Sum: wire.SumExact, Format: wire.FP8E4M3, Result: wire.BF16, Ports: 64},
		{Sum: wire.SumFused, Format: wire.Int32, Result: wire.Int32, Ports: 1, Saturate: true},
		{Sum: wire.SumFused, Format: wire.FP16, Result: wire.FP32, Ports: 3, DSP: true},
	} {
		if got, err := ParseLane(l.String()); got != l || err != nil {
			t.Errorf("%v is read as %v, %v", l, got, err)
		}
	}
	for _, bad := range []string{"", "tree fp32 fp32", "tree fp32 fp32 x", "sum fp32 fp32 8", "tree fp31 fp32 8", "tree fp32 fp32 8 fast"} {
		if l, err := ParseLane(bad); err == nil {
			t.Errorf("%q is read as %v", bad, l)
		}
	}
}

// TestAJudgeSeesWhatIsWrong: the judge reports a wrong sum, a missing overflow and a false one,
// each in a form that -replay takes.
func TestAJudgeSeesWhatIsWrong(t *testing.T) {
	l := Lane{Sum: wire.SumExact, Format: wire.FP16, Result: wire.FP16, Ports: 2}
	j, err := newJudge(l)
	if err != nil {
		t.Fatal(err)
	}
	ones, large := []uint32{0x3c00, 0x3c00}, []uint32{0x7bff, 0x7bff}
	for _, right := range []struct {
		x        []uint32
		y, flags uint32
	}{{ones, 0x4000, 0}, {ones, 0x4000, Undecided}, {large, 0x7c00, Overflowed}} {
		if err := j.check("right", right.x, right.y, right.flags); err != nil {
			t.Error(err)
		}
	}
	for _, wrong := range []struct {
		x        []uint32
		y, flags uint32
	}{{ones, 0x4001, 0}, {ones, 0x4000, Overflowed}, {large, 0x7c00, 0}, {large, 0x7c00, Undecided}} {
		err := j.check("wrong", wrong.x, wrong.y, wrong.flags)
		if err == nil {
			t.Errorf("%x, flags %d is taken for the sum of %x", wrong.y, wrong.flags, wrong.x)
			continue
		}
		line := strings.Split(err.Error(), "\n")[1]
		again := kept(t, line)[l]
		if len(again) != 1 || again[0][0] != wrong.x[0] || again[0][1] != wrong.x[1] {
			t.Errorf("%q is replayed as %x", line, again)
		}
	}
}

// TestSoftwareIsJudged: a wrong sum or overflow of the card in software is reported in the same
// form.
func TestSoftwareIsJudged(t *testing.T) {
	l := Lane{Sum: wire.SumExact, Format: wire.FP16, Result: wire.FP16, Ports: 2}
	for want, right := range map[answer]bool{{0x4000, false}: true, {0x4001, false}: false, {0x4000, true}: false} {
		s, err := newSoftware(l)
		if err != nil {
			t.Fatal(err)
		}
		err = errors.Join(s.add("zeros", []uint32{0, 0}, answer{}), s.add("ones", []uint32{0x3c00, 0x3c00}, want), s.finish())
		if right != (err == nil) {
			t.Errorf("%v: %v", want, err)
		}
		if err != nil && len(kept(t, strings.Split(err.Error(), "\n")[1])[l]) != 1 {
			t.Errorf("cannot be replayed: %v", err)
		}
	}
}
