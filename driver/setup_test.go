package driver_test

// Set-up over a link that delivers late copies of frames.

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"tributary/driver"
	"tributary/driver/frame"
	"tributary/driver/transport"
	"tributary/driver/wire"
)

// lateCopy is a link that repeats the first write to a register right before later commits.
type lateCopy struct {
	transport.Conn
	register uint32
	scan     *frame.Scanner
	first    []byte
	commits  int
	times    int // commits with a copy before them
}

func (l *lateCopy) Write(p []byte) (int, error) {
	var out []byte
	for rest := p; len(rest) > 0; {
		rest = rest[l.scan.Feed(rest):]
		for f := (frame.Frame{}); l.scan.Next(&f); {
			if f.Kind == wire.KindRegWrite && f.VID == l.register && l.first == nil {
				l.first = slices.Clone(f.Raw)
			}
			if f.Kind == wire.KindRegWrite && f.VID == wire.RegJobCommit {
				if l.commits++; l.commits > 1 && l.commits <= 1+l.times {
					out = append(out, l.first...)
				}
			}
			out = append(out, f.Raw...)
		}
	}
	if _, err := l.Conn.Write(out); err != nil {
		return 0, err
	}
	return len(p), nil
}

// lateJobs are a job whose staged registers come late, and the next one, with other values.
var lateJobs = [2]driver.JobConfig{
	{Ports: []int{0, 1, 2}, Chunk: 16, Window: 4, DeadlineCycles: 1, Partial: true},
	{Ports: []int{1, 3}, Chunk: 8, Window: 2},
}

// TestLateCopyOfStagedWrite: fault injection found a job with the members of another job. A
// late copy of a write to JOB_PORTS had come between staging and commit. The job's data then
// waited for ranks that it did not have.
func TestLateCopyOfStagedWrite(t *testing.T) {
	for name, register := range map[string]uint32{
		"ports": wire.RegJobPorts, "chunk": wire.RegJobChunk, "window": wire.RegJobWindow, "deadline": wire.RegJobDeadline,
	} {
		t.Run(name, bubble(func(t *testing.T) {
			link := &lateCopy{Conn: serve(t, holding(2), 64<<10), register: register, scan: frame.NewScanner(frame.ToCard, 0), times: 2}
			card := open(t, link)
			closes(t, configure(t, card, lateJobs[0]))
			job := configure(t, card, lateJobs[1])
			states, err := card.Jobs(testContext(t))
			if err != nil {
				t.Fatal(err)
			}
			if s := states[0]; !slices.Equal(s.Ports, []int{1, 3}) || s.Slots != 4 || s.Epoch != job.Epoch() {
				t.Errorf("%+v, epoch %d here", s, job.Epoch())
			}
			reduceOnce(t, job, rand.New(rand.NewPCG(1, 2)))
			closes(t, job)
		}))
	}
}

// TestStagedValuesAreNeverSetUp checks the error for a card that repeatedly sets up other parameters.
func TestStagedValuesAreNeverSetUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		link := &lateCopy{Conn: serve(t, holding(2), 64<<10), register: wire.RegJobPorts, scan: frame.NewScanner(frame.ToCard, 0), times: 10}
		card := open(t, link)
		closes(t, configure(t, card, lateJobs[0]))
		_, err := card.Configure(testContext(t), lateJobs[1])
		if err == nil || !strings.Contains(err.Error(), "card test: job 0 was set up 10 times, but never with the values written") {
			t.Errorf("got %v", err)
		}
		closes(t, configure(t, card, lateJobs[1]))
	})
}
