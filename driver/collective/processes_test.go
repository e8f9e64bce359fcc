package collective_test

// Racks of virtual cards: every card, every daemon and every member is a process.

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tributary/driver"
	"tributary/driver/collective"
	"tributary/driver/wire"
)

// rankVariable makes a process of this test a member of a group.
const rankVariable = "TRIBUTARY_TEST_RANK"

func TestMain(m *testing.M) {
	if os.Getenv(rankVariable) != "" {
		if err := runRank(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

const (
	within  = 5 * time.Minute // a test takes seconds
	endless = time.Hour       // a process that fails within has noticed why
)

// rankOrder is what a process is to do. It comes from standard input.
type rankOrder struct {
	Group   collective.Group
	Cards   []collective.RackCard
	Card    string // to create the job on: of agents
	Ticket  string // of the job: of the others of a rack
	Workers int    // of the job
	Seat    int    // in the job
	Lengths []int  // of the calls
}

// rankEvent is what a process has to say.
type rankEvent struct {
	Ticket string           `json:",omitempty"` // of the job that it has created
	Begun  int              `json:",omitempty"` // calls
	Sum    []byte           `json:",omitempty"` // of the call
	Stats  collective.Stats // after it
	Kind   string           `json:",omitempty"` // of the call's error: lost, given up, card, or another type
	Text   string           `json:",omitempty"`
	Rank   int              // that is lost
}

// runRank is a process.
func runRank() error {
	var o rankOrder
	if err := json.NewDecoder(os.Stdin).Decode(&o); err != nil {
		return err
	}
	go func() { // the test has ended
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(1)
	}()
	ctx := context.Background()
	events := json.NewEncoder(os.Stdout)
	cfg := collective.RinaConfig{Cards: o.Cards}
	switch {
	case o.Card != "":
		card, err := driver.Open(ctx, o.Card, driver.WithTimeout(endless))
		if err != nil {
			return err
		}
		defer card.Close()
		job, err := card.Configure(ctx, driver.JobConfig{Workers: o.Workers, Here: []int{0, o.Workers - 1}})
		if err != nil {
			return err
		}
		cfg.Seat, cfg.Incoming = job.Member(0), job.Member(o.Workers-1)
		if err := events.Encode(rankEvent{Ticket: job.Ticket()}); err != nil {
			return err
		}
	case o.Ticket != "":
		m, err := driver.Join(ctx, o.Ticket, o.Seat, driver.WithTimeout(endless))
		if err != nil {
			return err
		}
		defer m.Job().Card().Close()
		cfg.Seat = m
	}
	c, err := collective.OpenRina(ctx, o.Group, cfg, collective.WithSilence(endless), collective.WithConnectTime(endless),
		collective.WithWarnings(func(text string) { fmt.Fprintln(os.Stderr, "warning:", text) }))
	if err != nil {
		return err
	}
	for call, length := range o.Lengths {
		sum := make([]byte, 4*length)
		pending, err := c.StartAllReduce(ctx, wire.FP32, sum, rankArrays(len(o.Group.Members), length)[o.Group.Rank])
		if err != nil {
			return err
		}
		if err := events.Encode(rankEvent{Begun: call + 1}); err != nil {
			return err
		}
		e := rankEvent{Sum: sum}
		if err := pending.Wait(ctx); err != nil {
			e = failed(err)
		}
		e.Stats = c.Stats()
		if err := events.Encode(e); err != nil {
			return err
		}
		if e.Kind != "" {
			return c.Close(ctx)
		}
	}
	if err := c.Close(ctx); err != nil || cfg.Seat == nil {
		return err
	}
	return cfg.Seat.Job().Close(ctx) // waits for the others of the rack
}

// failed describes the error of a call. The group may have ended before the call's turn: the reason counts.
func failed(err error) rankEvent {
	e := rankEvent{Kind: fmt.Sprintf("%T", err), Text: err.Error()}
	var lost *collective.LostError
	var givenUp *collective.GivenUpError
	var card *collective.CardError
	switch {
	case errors.As(err, &lost):
		e.Kind, e.Rank = "lost", lost.Rank
	case errors.As(err, &givenUp):
		e.Kind = "given up"
	case errors.As(err, &card):
		e.Kind = "card"
	}
	return e
}

// rankArrays returns the arrays of all ranks for a call.
func rankArrays(size, length int) [][]byte {
	return randomArrays(uint64(length), wire.FP32, size, length)
}

// process is a process of a test.
type process struct {
	*exec.Cmd
	in   io.WriteCloser
	out  *bufio.Reader
	errs bytes.Buffer
}

// startProcess starts a program, which is killed at the end of ctx or of the test.
func startProcess(ctx context.Context, t *testing.T, program string, args ...string) *process {
	t.Helper()
	p := &process{Cmd: exec.CommandContext(ctx, program, args...)}
	p.Stderr = &p.errs
	in, err := p.StdinPipe()
	require.NoError(t, err)
	out, err := p.StdoutPipe()
	require.NoError(t, err)
	p.in, p.out = in, bufio.NewReader(out)
	require.NoError(t, p.Start(), "make racks-cards builds it")
	t.Cleanup(func() {
		p.kill()
		if t.Failed() && p.errs.Len() > 0 {
			t.Logf("%s %q: %s", filepath.Base(program), args, p.errs.String())
		}
	})
	return p
}

// line returns the next line.
func (p *process) line(t *testing.T) string {
	t.Helper()
	line, err := p.out.ReadString('\n')
	require.NoError(t, err, "%s", p)
	return line
}

// kill ends the process at once.
func (p *process) kill() {
	_ = p.Process.Kill()
	_ = p.Wait() // it was killed, or has ended before
}

// end ends the process in order and returns the rest of its output.
func (p *process) end(t *testing.T) string {
	t.Helper()
	require.NoError(t, p.Process.Signal(syscall.SIGTERM))
	rest, err := io.ReadAll(p.out)
	require.NoError(t, err)
	require.NoError(t, p.Wait())
	return string(rest)
}

// site is the processes of a group: members, and for each rack that has one a card and its daemon.
type site struct {
	racks
	cards, daemons map[string]*process
	members        []*process
	events         []*json.Decoder // of members
}

// built has folders of cards from here, by the options of a card in software with their sum.
var built = map[string]string{
	"sum=tree":  "../../build/usb/card",   // 4 lanes, 4 ports
	"sum=exact": "../../build/racks/card", // 4 lanes, 3 ports
}

// Their chunks: a call of the card sums whole ones.
const (
	cardChunk = 64 // elements
	cardBeats = 16
)

// virtualRacks has 5 nodes: racks of 3, 2 and 1 members with cards, and 2 members without.
var virtualRacks = racks{".abacab.", map[string]string{"a": "sum=tree", "b": "sum=exact", "c": "sum=tree"}, wire.FP32, 0}

// startSite starts all processes. The members make calls of these lengths.
func startSite(ctx context.Context, t *testing.T, k racks, lengths []int) *site {
	t.Setenv(rankVariable, "1")
	s := &site{racks: k, cards: map[string]*process{}, daemons: map[string]*process{}}
	names, tickets := map[string]string{}, map[string]string{}
	o := rankOrder{Group: k.group(t), Lengths: lengths}
	for rack, sum := range k.cards {
		names[rack] = s.startCard(ctx, t, rack, built[sum])
		card, err := driver.Open(ctx, names[rack])
		require.NoError(t, err)
		o.Cards = append(o.Cards, collective.RackCard{Rack: rack, Info: card.Info()})
		require.NoError(t, card.Close())
	}
	for rank := range k.layout { // agents have lower ranks than the others of their racks
		rack := k.layout[rank : rank+1]
		o := o
		o.Group.Rank = rank
		if k.cards[rack] != "" {
			ranks := k.members(rack)
			o.Workers, o.Seat, o.Ticket = len(ranks)+1, slices.Index(ranks, rank), tickets[rack]
			if rank == ranks[0] {
				o.Card = names[rack]
			}
		}
		m := startProcess(ctx, t, os.Args[0])
		s.members, s.events = append(s.members, m), append(s.events, json.NewDecoder(m.out))
		require.NoError(t, json.NewEncoder(m.in).Encode(o))
		if o.Card != "" {
			tickets[rack] = s.next(t, rank).Ticket
		}
	}
	return s
}

// startCard starts the card of a rack and its daemon. It returns the card's name for members.
func (s *site) startCard(ctx context.Context, t *testing.T, rack, folder string) string {
	sockets := socketDir(t)
	card, daemon := "unix:"+filepath.Join(sockets, "card"), "unix:"+filepath.Join(sockets, "daemon")
	s.cards[rack] = startProcess(ctx, t, filepath.Join(folder, "sim", "build", "card"), "--listen", card, "--end-with-stdin")
	require.Contains(t, s.cards[rack].line(t), "listening")
	s.daemons[rack] = startProcess(ctx, t, "../../bin/tributary", "serve", "-card", card, "-listen", daemon, "-timeout", endless.String())
	require.Contains(t, s.daemons[rack].line(t), "serving at")
	return "serve:" + daemon
}

// next returns the next event of a member.
func (s *site) next(t *testing.T, rank int) (e rankEvent) {
	t.Helper()
	require.NoError(t, s.events[rank].Decode(&e), "rank %d", rank)
	return e
}

// TestVirtualRacks: racks of virtual cards and members without have the bits of the written order, each in
// a process of its own. Every node takes 2(G-1) steps, with G = 5, and moves the pieces of the ring. The
// cards add every element of the racks: each sums as many beats as the pieces have.
func TestVirtualRacks(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	k := virtualRacks
	lengths := []int{1, 7, 5003, 20_001}
	s := startSite(ctx, t, k, lengths)
	nodes := k.nodes()
	require.Len(t, nodes, 5)
	want := make([]collective.Stats, len(k.layout))
	beats := map[string]int{}
	for call, length := range lengths {
		sum := k.sum(t, wire.FP32, rankArrays(len(k.layout), length))
		for place, ranks := range nodes {
			sent, received, summed := traffic(place, len(nodes), length)
			w := &want[ranks[0]]
			w.Steps, w.Sent, w.Received = w.Steps+2*(5-1), w.Sent+4*uint64(sent), w.Received+4*uint64(received)
			beats[k.layout[ranks[0]:ranks[0]+1]] += summed
		}
		for rank := range s.members {
			require.Equal(t, call+1, s.next(t, rank).Begun)
			e := s.next(t, rank)
			require.Empty(t, e.Text)
			require.True(t, bytes.Equal(sum, e.Sum), "rank %d has another sum of %d elements", rank, length)
			want[rank].Calls++
			e.Stats.Chunks = 0
			require.Equal(t, want[rank], e.Stats, "rank %d, %d elements", rank, length)
		}
	}
	for _, m := range s.members {
		require.NoError(t, m.Wait())
		require.Empty(t, m.errs.String())
	}
	for name, card := range s.cards {
		s.daemons[name].end(t)
		require.Contains(t, card.end(t), fmt.Sprintf(" beats=%d ", beats[name]), "the card of rack %s", name)
	}
}

// traffic returns the elements that a node sends and receives in an all-reduce (SPEC.md, section 4), and the
// beats of its card, if it has one (section 12): those of all pieces in the scatter-reduce, and of all
// but its own sum in the all-gather.
func traffic(node, nodes, length int) (sent, received, beats int) {
	piece := func(p int) int {
		p = (p + nodes) % nodes
		return (p+1)*length/nodes - p*length/nodes
	}
	for s := range nodes - 1 {
		sent += piece(node-s) + piece(node+1-s)
		received += piece(node-s-1) + piece(node-s)
	}
	for p := range nodes {
		chunks := (piece(p) + cardChunk - 1) / cardChunk
		if beats += chunks * cardBeats; p != (node+1)%nodes {
			beats += chunks * cardBeats
		}
	}
	return sent, received, beats
}

// TestVirtualRacksLose: a card, a daemon or an agent is killed in a call. Every member's call fails, with an
// error that names the dead agent, or the failed card.
func TestVirtualRacksLose(t *testing.T) {
	for name, victim := range map[string]func(s *site) *process{
		"card":   func(s *site) *process { return s.cards["a"] },
		"daemon": func(s *site) *process { return s.daemons["b"] },
		"agent":  func(s *site) *process { return s.members[1] },
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), within)
			defer cancel()
			s := startSite(ctx, t, virtualRacks, []int{100, 200_000}) // seconds of simulation
			for rank := range s.members {
				require.Equal(t, 1, s.next(t, rank).Begun)
				require.Empty(t, s.next(t, rank).Text)
				require.Equal(t, 2, s.next(t, rank).Begun)
			}
			began, dead := time.Now(), victim(s)
			dead.kill()
			for rank, m := range s.members {
				if m == dead {
					continue
				}
				e := s.next(t, rank)
				if name == "agent" {
					require.Equal(t, "lost", e.Kind, "rank %d: %s", rank, e.Text)
					require.Equal(t, 1, e.Rank, e.Text)
				} else {
					require.Contains(t, []string{"card", "given up"}, e.Kind, "rank %d: %s", rank, e.Text)
				}
				t.Logf("rank %d after %s: %s: %s", rank, time.Since(began), e.Kind, e.Text)
				require.NoError(t, m.Wait())
			}
		})
	}
}
