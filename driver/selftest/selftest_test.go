package selftest

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"tributary/driver"
	"tributary/driver/element"
	"tributary/driver/frame"
	"tributary/driver/model"
	"tributary/driver/transport"
	"tributary/driver/wire"
)

// spoiled is a link to a card that lies: it changes the card's frames and fits their CRCs to
// the change.
type spoiled struct {
	net.Conn
	scan  *frame.Scanner
	spoil func(*frame.Frame)
	out   []byte // changed frames not yet read
}

func (s *spoiled) Read(b []byte) (int, error) {
	var f frame.Frame
	for len(s.out) == 0 {
		if s.scan.Next(&f) {
			s.spoil(&f)
			s.out = frame.Append(nil, &f.Header, f.Payload)
		} else if _, err := s.scan.Fill(s.Conn); err != nil {
			return 0, err
		}
	}
	n := copy(b, s.out)
	s.out = s.out[n:]
	return n, nil
}

// paced is a slow link. In a bubble, polling a counter would otherwise leave no time to pass.
type paced struct{ net.Conn }

func (p paced) Write(b []byte) (int, error) {
	time.Sleep(100 * time.Microsecond)
	return p.Conn.Write(b)
}

// bubble returns f in a bubble of package synctest. Time passes there only when all goroutines
// wait, so the machine's load does not matter.
func bubble(f func(t *testing.T)) func(t *testing.T) {
	return func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, f)
	}
}

// cards maps NAME to the function that opens the card "test:NAME".
var cards sync.Map

func init() {
	transport.Register("test", func(_ context.Context, r transport.Request) (transport.Conn, error) {
		open, _ := cards.Load(r.Address)
		return open.(func() transport.Conn)(), nil
	})
}

// serve starts the model of a card and returns its name. The card lies if spoil is not nil.
func serve(t *testing.T, cfg model.Config, spoil func(*frame.Frame)) string {
	cfg.Shell, cfg.Link = wire.ShellStream, 32
	card, err := model.NewCard(cfg)
	require.NoError(t, err)
	serving := make(chan struct{}, 1)
	cards.Store(t.Name(), func() transport.Conn {
		host, end := net.Pipe()
		go func() {
			serving <- struct{}{} // the card may still see the previous host
			defer func() { <-serving }()
			card.Serve(end)
		}()
		if spoil == nil {
			return paced{host}
		}
		return &spoiled{Conn: paced{host}, scan: frame.NewScanner(frame.FromCard, 0), spoil: spoil}
	})
	return "test:" + t.Name()
}

// ask runs the self-test and returns the errors of the outcomes by name. timeout limits the
// wait for replies to hand-made frames.
func ask(t *testing.T, name string, timeout time.Duration) map[string]error {
	outcomes := map[string]error{}
	o := Options{Timeout: timeout, Open: []driver.Option{driver.WithTimeout(max(timeout, 5*time.Second))}}
	err := Run(context.Background(), name, o, func(o Outcome) {
		require.NotContains(t, outcomes, o.Name)
		outcomes[o.Name] = o.Err
	})
	require.NoError(t, err)
	return outcomes
}

func TestGoodCards(t *testing.T) {
	for ports, questions := range map[int]int{1: 10, 2: 14, 3: 15, 5: 16, 64: 16} {
		for _, cfg := range []model.Config{
			{Lanes: 1, Ports: ports, Chunk: 1, Window: 1},
			{Lanes: 4, Ports: ports, Chunk: 32, Window: 4},
			{Lanes: 16, Ports: ports, Chunk: 16, Window: 8},
		} {
			t.Run(fmt.Sprintf("%d ports, %d lanes", ports, cfg.Lanes), bubble(func(t *testing.T) {
				outcomes := ask(t, serve(t, cfg, nil), 5*time.Second)
				require.Len(t, outcomes, questions)
				for name, err := range outcomes {
					require.NoError(t, err, name)
				}
			}))
		}
	}
}

// TestGoodCardsOfSeveralJobs checks the additional question for cards with slots for two jobs.
func TestGoodCardsOfSeveralJobs(t *testing.T) {
	for _, cfg := range []model.Config{
		{Lanes: 1, Ports: 2, Chunk: 1, Window: 1, Jobs: 2},
		{Lanes: 4, Ports: 3, Chunk: 8, Window: 2, Jobs: 4},
		{Lanes: 4, Ports: 1, Chunk: 32, Window: 8, Jobs: 2},
		{Lanes: 2, Ports: 4, Chunk: 8, Window: 16, Jobs: 16},
	} {
		t.Run(fmt.Sprintf("%d jobs, window %d", cfg.Jobs, cfg.Window), bubble(func(t *testing.T) {
			outcomes := ask(t, serve(t, cfg, nil), 5*time.Second)
			_, asked := outcomes["jobs"]
			require.Equal(t, cfg.Window > 1, asked)
			for name, err := range outcomes {
				require.NoError(t, err, name)
			}
		}))
	}
}

// TestBadCardsOfSeveralJobs checks that the self-test finds defects that only show with jobs
// side by side.
func TestBadCardsOfSeveralJobs(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(*frame.Frame)
		wrong string
	}{
		"bits of another job's": {func(f *frame.Frame) {
			if f.Kind == wire.KindResult && f.Job == 1 {
				f.Payload[1] ^= 1
			}
		}, "jobs"},
		"slots without end": {func(f *frame.Frame) {
			if f.Code == wire.CodeNoSlots {
				f.Code = wire.CodeDone
			}
		}, "registers"},
		"a block too many": {func(f *frame.Frame) {
			if f.VID == wire.JobAddr(wire.RegJobState, 2) {
				f.Code = wire.CodeDone
			}
		}, "registers"},
	} {
		t.Run(name, bubble(func(t *testing.T) {
			outcomes := ask(t, serve(t, model.Config{Lanes: 4, Ports: 4, Chunk: 32, Window: 4, Jobs: 2}, c.spoil), time.Second)
			for name, err := range outcomes {
				require.Equal(t, name == c.wrong, err != nil, "%s: %v", name, err)
			}
		}))
	}
}

// TestGoodCardsOfEveryKind compares the written answers with the model, which was written
// independently.
func TestGoodCardsOfEveryKind(t *testing.T) {
	for _, sum := range wire.Sums {
		for _, format := range wire.Formats {
			for _, result := range wire.Formats {
				if !format.FitsIn(result) {
					continue
				}
				for _, saturate := range []bool{false, true} {
					if saturate && (format.Format != wire.Int32 || !sum.Adds) {
						continue
					}
					for _, ports := range []int{4, 64} {
						if ports == 64 && format.Format != result.Format {
							continue // many ports take long and test nothing more of wider formats
						}
						cfg := model.Config{Lanes: 2, Ports: ports, Chunk: 8, Window: 2, Format: format.Format, Result: result.Format, Sum: sum.Sum, Saturate: saturate}
						t.Run(fmt.Sprintf("%s of %s into %s, saturates %t, %d ports", sum.Name, format.Name, result.Name, saturate, ports), bubble(func(t *testing.T) {
							for name, err := range ask(t, serve(t, cfg, nil), 5*time.Second) {
								require.NoError(t, err, name)
							}
						}))
					}
				}
			}
		}
	}
}

// TestAnswersForEveryKind checks that there are answers for every kind of card.
func TestAnswersForEveryKind(t *testing.T) {
	for _, format := range wire.Formats {
		require.NotEmpty(t, singles[format.Format], format.Name)
		for _, result := range wire.Formats {
			if !format.FitsIn(result) {
				continue
			}
			for _, sum := range wire.Sums {
				a := newArithmetic(driver.Info{Format: format.Format, Result: result.Format, Sum: sum.Sum})
				require.NotEmpty(t, a.expected.edges(&a), "%s of %s into %s", sum.Name, format.Name, result.Name)
				require.NotEmpty(t, a.expected.triples(&a))
				require.NotEmpty(t, a.expected.quadruples(&a))
			}
			a := newArithmetic(driver.Info{Format: format.Format, Result: result.Format, Sum: wire.SumTree})
			for i := range 10_000 {
				x := a.pattern(i, i%7)
				require.True(t, element.Finite(format.Format, x))
				require.True(t, format.Exp == 0 || x >= 1<<format.Frac && x <= largest(format), "%s: pattern %#x", format.Name, x)
			}
		}
	}
}

// TestUnknownSum checks that the self-test rejects a card whose sum has no answers.
func TestUnknownSum(t *testing.T) {
	err := checkSum(driver.Info{Name: "test:", Sum: 99})
	require.ErrorContains(t, err, "the self-test has no answers for sum 99")
	for _, sum := range wire.Sums {
		require.NoError(t, checkSum(driver.Info{Sum: sum.Sum}), sum.Name)
	}
}

// elements returns a function that changes every element of a result.
func elements(change func(uint32) uint32) func(*frame.Frame) {
	return func(f *frame.Frame) {
		for p := f.Payload; len(p) > 0; p = p[4:] {
			binary.LittleEndian.PutUint32(p, change(binary.LittleEndian.Uint32(p)))
		}
	}
}

// TestBadCards checks that some card fails each question, and that each defect fails only the
// questions about it.
func TestBadCards(t *testing.T) {
	isReply := func(f *frame.Frame, addr uint32) bool { return f.Kind == wire.KindReply && f.VID == addr }
	counter := func(name string) uint32 {
		for i, c := range wire.Counters {
			if c.Name == name {
				return wire.CounterAddr(i)
			}
		}
		panic(name)
	}
	all := []string{"lanes", "ports", "single", "edges", "order", "far", "counted", "deadlines", "sizes", "registers", "refusals", "damage", "missing", "replay", "finish", "flips"}
	for name, c := range map[string]struct {
		spoil func(*frame.Frame)
		wrong []string // must fail
		maybe bool     // others may fail too: after a flip the driver itself finds the defect
	}{
		"lanes 0 and 2 swapped": {func(f *frame.Frame) {
			for p := f.Payload; len(p) > 0; p = p[16:] {
				a, b := binary.LittleEndian.Uint32(p), binary.LittleEndian.Uint32(p[8:])
				binary.LittleEndian.PutUint32(p, b)
				binary.LittleEndian.PutUint32(p[8:], a)
			}
		}, []string{"lanes", "ports", "deadlines", "sizes", "damage", "replay", "refusals", "flips"}, false},
		"subnormals flushed": {elements(func(x uint32) uint32 {
			if x&0x7f800000 == 0 {
				return x & 0x80000000
			}
			return x
		}), []string{"single", "edges"}, false},
		"NaNs keep a sign": {elements(func(x uint32) uint32 {
			if x == 0x7fc00000 {
				return 0xffc00000
			}
			return x
		}), []string{"single", "edges", "order"}, false},
		"added from left to right": {elements(func(x uint32) uint32 {
			if x == 0x4b800001 {
				return 0x4b800000
			}
			return x
		}), []string{"order"}, false},
		"replays with another bit": {func(f *frame.Frame) {
			if f.Kind == wire.KindReplay {
				f.Payload[0] ^= 1
			}
		}, []string{"replay"}, true},
		"replays called results": {func(f *frame.Frame) {
			if f.Kind == wire.KindReplay {
				f.Kind = wire.KindResult
			}
		}, []string{"replay"}, true},
		"payload CRC not counted": {func(f *frame.Frame) {
			if isReply(f, counter("payload_crc")) {
				f.Mask = 0
			}
		}, []string{"damage"}, false},
		"early not counted": {func(f *frame.Frame) {
			if isReply(f, counter("early")) {
				f.Mask = 0
			}
		}, []string{"refusals"}, false},
		"refusals counted twice": {func(f *frame.Frame) {
			if isReply(f, counter("not_ready")) {
				f.Mask *= 2
			}
		}, []string{"refusals"}, false},
		"masks without rank 2": {func(f *frame.Frame) {
			if f.Kind == wire.KindStatus {
				f.Mask &^= 4
			}
		}, []string{"missing"}, true},
		"any address read": {func(f *frame.Frame) {
			if f.Code == wire.CodeBadAddress {
				f.Code = wire.CodeDone
			}
		}, []string{"registers"}, false},
		"overflows not counted": {func(f *frame.Frame) {
			if isReply(f, wire.RegJobOverflow) {
				f.Mask = 0
			}
		}, []string{"counted"}, false},
		"the first NaN's rank forgotten": {func(f *frame.Frame) {
			if isReply(f, wire.RegJobFirstIn) {
				f.Mask &^= 0xff << 32
			}
		}, []string{"counted"}, false},
		"partial sums with another bit": {func(f *frame.Frame) {
			if f.Flags&wire.FlagPartial != 0 && len(f.Payload) > 0 {
				f.Payload[0] ^= 1
			}
		}, []string{"deadlines"}, false},
		"the evicted forgotten": {func(f *frame.Frame) {
			if isReply(f, wire.RegJobEvicted) {
				f.Mask = 0
			}
		}, []string{"deadlines"}, false},
		"any deadline taken": {func(f *frame.Frame) {
			if f.Code == wire.CodeBadDeadline {
				f.Code = wire.CodeDone
			}
		}, []string{"registers"}, false},
		"no end of a job": {func(f *frame.Frame) {
			if isReply(f, wire.RegJobState) {
				f.Mask |= 1
			}
		}, []string{"finish"}, false},
	} {
		t.Run(name, bubble(func(t *testing.T) {
			bad := ask(t, serve(t, model.Config{Lanes: 4, Ports: 4, Chunk: 32, Window: 4}, c.spoil), time.Second)
			var wrong []string
			for _, q := range all {
				require.Contains(t, bad, q)
				if bad[q] != nil {
					t.Logf("%s: %v", q, bad[q])
					wrong = append(wrong, q)
				}
			}
			require.Subset(t, wrong, c.wrong)
			if !c.maybe {
				require.Subset(t, c.wrong, wrong)
			}
		}))
	}
}
