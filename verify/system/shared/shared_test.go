package main

import (
	"bytes"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"tributary/driver"
	"tributary/driver/frame"
	"tributary/driver/transport"
	"tributary/driver/wire"
)

// lieVariable in the environment makes the site's card tell one of lies.
const lieVariable = "TRIBUTARY_SHARED_LIE"

// TestMain makes the test binary the processes of its sites.
func TestMain(m *testing.M) {
	if lie := lies[os.Getenv(lieVariable)]; lie != nil {
		cardEnd = func(conn transport.Conn) transport.Conn {
			return &liar{Conn: conn, lie: lie, scan: frame.NewScanner(frame.FromCard, 0)}
		}
	}
	if role := os.Getenv(roleVariable); role != "" {
		play(role)
	}
	os.Exit(m.Run())
}

// TestShared kills five hundred processes, at least twenty in each phase.
func TestShared(t *testing.T) {
	c := campaign{kills: 500, seed: 1, report: func(int) {}}
	err := c.run(t.Context())
	var out bytes.Buffer
	c.table.print(&out)
	t.Log(out.String())
	if err != nil {
		t.Fatal(err)
	}
	if c.table.killed() < c.kills || c.table.Sums < c.kills {
		t.Errorf("%d kills, %d sums compared", c.table.killed(), c.table.Sums)
	}
	for _, p := range phases {
		if c.table.in(p) < 20 {
			t.Errorf("%d kills in phase %q", c.table.in(p), p)
		}
	}
	for _, role := range []string{"member", "daemon", "card"} {
		if len(c.table.Kills[role]) == 0 {
			t.Errorf("no %s was killed", role)
		}
	}
}

// lies are what a card does to one result in fifty.
var lies = map[string]func(*frame.Frame){
	"wrong sum":        func(f *frame.Frame) { f.Payload[4*(chunkElements-1)+1] ^= 4 },
	"lacks a member":   func(f *frame.Frame) { clear(f.Payload[:4]) },
	"of another chunk": func(f *frame.Frame) { copy(f.Payload, before) },
}

var before = make([]byte, chunkElements*4) // an earlier result's payload

// liar is a card's end of a link, which changes results and gives them a right CRC.
type liar struct {
	transport.Conn
	lie  func(*frame.Frame)
	scan *frame.Scanner
	seen int
}

func (l *liar) Write(p []byte) (int, error) {
	var out []byte
	for rest := p; len(rest) > 0; {
		rest = rest[l.scan.Feed(rest):]
		for f := (frame.Frame{}); l.scan.Next(&f); {
			if f.Kind != wire.KindResult {
				out = append(out, f.Raw...)
				continue
			}
			sum := slices.Clone(f.Payload)
			if l.seen++; l.seen%50 == 0 {
				l.lie(&f)
			}
			before = sum
			out = frame.Append(out, &f.Header, f.Payload)
		}
	}
	if _, err := l.Conn.Write(out); err != nil {
		return 0, err
	}
	return len(p), nil
}

// TestWrongCardIsFoundOut: a card with rare wrong results ends the campaign, with the command that repeats
// the round.
func TestWrongCardIsFoundOut(t *testing.T) {
	for lie := range lies {
		t.Run(lie, func(t *testing.T) {
			t.Setenv(lieVariable, lie)
			c := campaign{kills: 100, seed: 1, report: func(int) {}}
			err := c.run(t.Context())
			if err == nil || !strings.Contains(err.Error(), ": wrong: ") || !strings.Contains(err.Error(), "make soak-shared SEED=") {
				t.Errorf("got %v", err)
			}
		})
	}
}

// TestCheck: check accepts right sums alone.
func TestCheck(t *testing.T) {
	a := array{seed: 5, workers: 2}
	const n = 40 // two chunks and a half
	one, other := newStamp(3, 0), newStamp(4, 0)
	sumOf := func(stamps ...stamp) []float32 {
		sum := make([]float32, n)
		for i := range sum {
			for rank, s := range stamps {
				if s != 0 {
					sum[i] += a.element(s, rank, i) // two terms have one order
				}
			}
		}
		return sum
	}
	partial := []driver.Partial{{From: 16, To: 32, Ranks: []int{1}}}
	lacking := sumOf(one, other)
	copy(lacking[16:32], sumOf(0, other)[16:32])
	mixed := sumOf(one, other)
	copy(mixed[32:], sumOf(one, newStamp(4, 1))[32:])
	wrong := sumOf(one, other)
	wrong[n-1] = math.Nextafter32(wrong[n-1], 0)
	for name, c := range map[string]struct {
		sum      []float32
		partials []driver.Partial
		want     string // part of the error
	}{
		"right":                    {sumOf(one, other), nil, ""},
		"partial":                  {lacking, partial, ""},
		"partial, not reported":    {lacking, nil, "are reported"},
		"reported, not partial":    {sumOf(one, other), partial, "are reported"},
		"arrays of two calls":      {mixed, nil, "an earlier one"},
		"a wrong bit":              {wrong, nil, "the sum of arrays"},
		"a report beyond the sums": {sumOf(one, other), []driver.Partial{{From: 32, To: 48, Ranks: []int{0}}}, "of 40"},
	} {
		got, err := a.check(c.sum, c.partials)
		if c.want == "" && (err != nil || got.Chunks != 3 || !slices.Equal(got.Stamps, []stamp{one, other}) || got.Partial != len(c.partials)) {
			t.Errorf("%s: got %+v, %v", name, got, err)
		}
		if c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: got %v, want ...%s...", name, err, c.want)
		}
	}
}

// TestLedger: the ledger accepts sums that members of a job have in common, each array in one.
func TestLedger(t *testing.T) {
	mine, yours := newStamp(1, 0), newStamp(2, 0)
	sum := func(x uint32, stamps ...stamp) *summed { return &summed{Stamps: stamps, Sum: x, Chunks: 1} }
	type call struct {
		life, rank, call int
		sum              *summed
	}
	for name, c := range map[string]struct {
		calls []call
		want  string
	}{
		"both":               {[]call{{1, 0, 0, sum(7, mine, yours)}, {2, 1, 0, sum(7, mine, yours)}}, ""},
		"without the second": {[]call{{1, 0, 0, sum(7, mine, 0)}}, ""},
		"another sum":        {[]call{{1, 0, 0, sum(7, mine, yours)}, {2, 1, 0, sum(8, mine, yours)}}, "another sum"},
		"a call delivered twice": {[]call{{1, 0, 0, sum(7, mine, yours)}, {1, 0, 0, sum(7, mine, yours)}},
			"instead of call 1"},
		"an array in two sums": {[]call{{1, 0, 0, sum(7, mine, yours)}, {1, 0, 1, sum(7, newStamp(1, 1), yours)}},
			"sum has arrays"},
		"the array of an earlier call": {[]call{{1, 0, 0, sum(7, mine, yours)}, {1, 0, 1, sum(7, mine, 0)}}, "instead of"},
	} {
		l := newLedger()
		var err error
		for _, r := range c.calls {
			if err == nil {
				err = l.take(r.life, r.rank, r.call, r.sum)
			}
		}
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: got %v, want ...%s...", name, err, c.want)
		}
	}
}

// TestExplain: a failure needs a reason.
func TestExplain(t *testing.T) {
	plain, carries, partial := &jobPlan{}, &jobPlan{Carry: true}, &jobPlan{Partial: true}
	for name, c := range map[string]struct {
		job *jobPlan
		end ending
		d   damage
		ok  bool
	}{
		"finished":                            {plain, ending{}, damage{}, true},
		"a member was killed":                 {plain, ending{failed: true, kind: "MemberLostError", ranks: []int{1}}, damage{dead: []int{1}}, true},
		"another member was killed":           {plain, ending{failed: true, kind: "MemberLostError", ranks: []int{1}}, damage{dead: []int{2}}, false},
		"finished before the daemon's death":  {carries, ending{failed: true, kind: "MemberLostError", ranks: []int{1}}, damage{daemon: true, left: []int{1}}, true},
		"the card was killed":                 {plain, ending{failed: true, kind: "DiedError"}, damage{card: true}, true},
		"the card was killed, and it carries": {carries, ending{failed: true, kind: "DiedError", stage: "call"}, damage{card: true}, false},
		"no card was killed":                  {plain, ending{failed: true, kind: "DiedError", stage: "call"}, damage{}, false},
		"evicted":                             {partial, ending{failed: true, kind: "EvictedError"}, damage{}, true},
		"evicted without partial sums":        {plain, ending{failed: true, kind: "EvictedError"}, damage{}, false},
		"an eviction that nobody heard of":    {&jobPlan{Carry: true, Partial: true}, ending{failed: true, kind: "ResultLostError"}, damage{daemon: true}, true},
		"a lost result":                       {carries, ending{failed: true, kind: "ResultLostError"}, damage{daemon: true}, false},
		"a wrong sum":                         {partial, ending{failed: true, kind: "wrong"}, damage{card: true, daemon: true, dead: []int{0}}, false},
		"a time-out":                          {carries, ending{failed: true, kind: "other"}, damage{card: true, daemon: true, dead: []int{0}}, false},
	} {
		if err := c.job.explain(c.end, c.d); (err == nil) != c.ok {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
