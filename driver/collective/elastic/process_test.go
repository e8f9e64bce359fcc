package elastic_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tributary/driver"
	"tributary/driver/collective/elastic"
	"tributary/driver/collective/membership"
	"tributary/driver/collective/membership/etcd"
	"tributary/driver/daemon"
	"tributary/driver/virtual/udp"
	"tributary/driver/wire"
)

// roleVariable in the environment makes the test binary one of the processes of TestProcesses.
const roleVariable = "TRIBUTARY_ELASTIC_ROLE"

// TestMain makes the test binary the processes of TestProcesses.
func TestMain(m *testing.M) {
	role := roles[os.Getenv(roleVariable)]
	if role == nil {
		os.Exit(m.Run())
	}
	var o order
	in := json.NewDecoder(os.Stdin)
	err := in.Decode(&o)
	if err == nil {
		err = role(o, in, json.NewEncoder(os.Stdout))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// order is what a process is told: at its start, and a worker again for each call.
type order struct {
	Dir, Path, URL string // of etcd's data; of a card's socket; of etcd
	Workers        int    // of a card
	Self           elastic.Self
	TTL            time.Duration // of a worker's lease
	Index          int           // of a worker
	Expect         int
	Call, Elements int
	Deadline       time.Duration
	Cards          int // a worker waits for a plan with as many instead of a call
	Leave          bool
}

// reply is what a process answers.
type reply struct {
	Ready  string // it has started; of etcd: its URL
	Begun  bool   // a call begins
	Result []byte
	Error  string
	Kind   string   // of the error: its type
	Lost   []string // by the error
	Late   bool     // the error is a timeout
	Took   time.Duration
	Cards  int // of the plan
	Warned []string
}

var roles = map[string]func(order, *json.Decoder, *json.Encoder) error{"etcd": playEtcd, "card": playCard, "worker": playWorker}

// ended waits until the test closes standard input, or is gone.
func ended(in *json.Decoder) { _, _ = io.Copy(io.Discard, in.Buffered()); _ = in.Decode(new(order)) }

func playEtcd(o order, in *json.Decoder, out *json.Encoder) error {
	s, err := etcd.Start(context.Background(), etcd.ServerConfig{Dir: o.Dir, Client: o.URL})
	if err != nil {
		return err
	}
	if err := out.Encode(reply{Ready: s.Engine()}); err != nil {
		return err
	}
	ended(in)
	return nil
}

func playCard(o order, in *json.Decoder, out *json.Encoder) error {
	ctx := context.Background()
	c, err := driver.Open(ctx, "cpu:", driver.WithWorkers(o.Workers), driver.WithFormat(wire.Int32))
	if err != nil {
		return err
	}
	l, err := net.Listen("unix", o.Path)
	if err != nil {
		return err
	}
	go func() {
		_ = daemon.New(map[string]daemon.Card{"card": c}, daemon.Options{}).Serve(ctx, l, 0) // until the process ends
	}()
	if err := out.Encode(reply{Ready: o.Path}); err != nil {
		return err
	}
	ended(in)
	return nil
}

func playWorker(o order, in *json.Decoder, out *json.Encoder) error {
	ctx, cancel := context.WithTimeout(context.Background(), siteTime)
	defer cancel()
	e, err := membership.Open(ctx, o.URL)
	if err != nil {
		return err
	}
	var mu sync.Mutex
	var warned []string
	g, err := elastic.Join(ctx, e, o.Self, elastic.Config{Name: "processes", Token: "secret", Expect: o.Expect, TTL: o.TTL,
		Warn: func(text string) { mu.Lock(); warned = append(warned, text); mu.Unlock() }})
	if err != nil {
		return err
	}
	if err := out.Encode(reply{Ready: o.Self.ID}); err != nil {
		return err
	}
	for {
		var next order
		if err := in.Decode(&next); err != nil {
			return err
		}
		var r reply
		switch {
		case next.Leave:
			err := errors.Join(g.Close(ctx), e.Close(), out.Encode(reply{}))
			return err
		case next.Cards > 0:
			if err := g.Await(ctx, func(p elastic.Plan) bool { return len(p.Cards) == next.Cards }); err != nil {
				return err
			}
		default:
			if err := out.Encode(reply{Begun: true}); err != nil {
				return err
			}
			r = oneCall(g, o.Index, next)
		}
		r.Cards = len(g.Plan().Cards)
		mu.Lock()
		r.Warned = warned
		mu.Unlock()
		if err := out.Encode(r); err != nil {
			return err
		}
	}
}

// oneCall makes a worker's call, in place.
func oneCall(g *elastic.Group, index int, o order) (r reply) {
	ctx, cancel := context.WithTimeout(context.Background(), o.Deadline)
	defer cancel()
	array := values(index, o.Call, o.Elements)
	from := time.Now()
	err := g.AllReduce(ctx, wire.Int32, array, array)
	r.Took = time.Since(from)
	if err == nil {
		r.Result = array
		return r
	}
	r.Error, r.Kind = err.Error(), fmt.Sprintf("%T", err)
	var lost *elastic.LostError
	if errors.As(err, &lost) {
		r.Lost = lost.IDs
	}
	var late interface{ Timeout() bool }
	r.Late = errors.As(err, &late) && late.Timeout()
	return r
}

// process is one process of the test.
type process struct {
	*testing.T
	cmd *exec.Cmd
	in  io.WriteCloser
	out *json.Decoder
}

// spawn starts a process and waits until it is ready.
func spawn(t *testing.T, role string, o order) (*process, string) {
	t.Helper()
	p := launch(t, role, o)
	return p, p.reply().Ready
}

func launch(t *testing.T, role string, o order) *process {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), roleVariable+"="+role)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	p := &process{t, cmd, in, json.NewDecoder(bufio.NewReader(out))}
	t.Cleanup(p.kill)
	p.tell(o)
	return p
}

func (p *process) tell(o order) {
	p.Helper()
	require.NoError(p, json.NewEncoder(p.in).Encode(o))
}

func (p *process) reply() (r reply) {
	p.Helper()
	require.NoError(p, p.out.Decode(&r), "a process has ended")
	return r
}

func (p *process) kill() {
	if p.cmd.ProcessState == nil {
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
	}
}

// site is two racks, r0 with workers 0 and 1, and r1 with 2 and 3, and worker 4 without.
type site struct {
	*testing.T
	dir     string
	engine  string
	etcd    *process
	cards   [2]*process
	workers map[int]*process
	calls   int
}

const siteElements = 50_000

func newSite(t *testing.T) *site {
	s := &site{T: t, dir: socketDir(t), workers: map[int]*process{}}
	s.etcd, s.engine = spawn(t, "etcd", order{Dir: filepath.Join(s.dir, "etcd"), URL: "http://" + udp.OwnLoopback() + ":0"}) // nobody takes its port meanwhile
	return s
}

func (s *site) cardPath(rack int) string { return filepath.Join(s.dir, fmt.Sprint("card", rack)) }

func (s *site) startCard(rack int) {
	s.cards[rack], _ = spawn(s.T, "card", order{Path: s.cardPath(rack), Workers: 3})
}

func (s *site) startWorkers() {
	for i := range 5 {
		self := elastic.Self{ID: fmt.Sprint("w", i), Address: "unix:" + filepath.Join(s.dir, fmt.Sprint("w", i))}
		if i < 4 {
			self.Rack = fmt.Sprint("r", i/2)
			self.Card = "serve:unix:" + s.cardPath(i/2)
		}
		ttl := siteTime // the group does not lose it on a busy machine
		if i == 2 || i == 4 {
			ttl = 10 * time.Second // it is killed, and the test waits for its lease to end
		}
		s.workers[i] = launch(s.T, "worker", order{URL: s.engine, Self: self, TTL: ttl, Index: i, Expect: 5})
	}
	for i, w := range s.workers {
		require.Equal(s, fmt.Sprint("w", i), w.reply().Ready)
	}
}

// begin starts a call of some workers, of all that are left if none is named.
func (s *site) begin(deadline time.Duration, who ...int) {
	for i, w := range s.workers {
		if slices.Contains(who, i) {
			w.tell(order{Call: s.calls, Elements: siteElements, Deadline: deadline})
			require.True(s, w.reply().Begun)
		}
	}
}

// living returns the workers that are left, without some.
func (s *site) living(without ...int) (all []int) {
	for i := range s.workers {
		if !slices.Contains(without, i) {
			all = append(all, i)
		}
	}
	slices.Sort(all)
	return all
}

// finish returns the replies of workers that make a call.
func (s *site) finish() map[int]reply {
	all := map[int]reply{}
	for i, w := range s.workers {
		all[i] = w.reply()
	}
	return all
}

// sums requires that a call gave the sum of all that are left.
func (s *site) sums(replies map[int]reply, cards int) {
	s.Helper()
	var arrays [][]byte
	for _, i := range s.living() {
		arrays = append(arrays, values(i, s.calls, siteElements))
	}
	want := sum(arrays...)
	for i, r := range replies {
		require.Empty(s, r.Error, "w%d, call %d", i, s.calls)
		require.Equal(s, want, r.Result, "w%d, call %d", i, s.calls)
		require.Equal(s, cards, r.Cards, "w%d, call %d", i, s.calls)
	}
}

// call makes a call of all workers.
func (s *site) call(cards int) {
	s.Helper()
	s.calls++
	s.begin(siteTime, s.living()...)
	s.sums(s.finish(), cards)
}

// awaitCards waits until all workers have a plan with so many cards.
func (s *site) awaitCards(n int) {
	for _, w := range s.workers {
		w.tell(order{Cards: n})
	}
	for _, w := range s.workers {
		require.Equal(s, n, w.reply().Cards)
	}
}

// remove kills a worker.
func (s *site) remove(i int) {
	s.workers[i].kill()
	delete(s.workers, i)
}

// siteTime is far longer than all of TestProcesses takes.
const siteTime = 5 * time.Minute

// TestProcesses: a card is added, a card is killed in a call, an agent is killed in a call, etcd is killed and
// comes back. Each sum is that of plain loops, or each member has a typed error within its deadline.
func TestProcesses(t *testing.T) {
	s := newSite(t)
	s.startCard(0)
	s.startWorkers()
	s.awaitCards(1)
	s.call(1)

	s.startCard(1)
	s.awaitCards(2)
	s.call(2)
	s.call(2)

	// A card dies in a call, which runs again.
	s.calls++
	s.begin(siteTime, s.living(4)...)
	s.cards[0].kill()
	s.begin(siteTime, 4)
	s.sums(s.finish(), 1)
	s.call(1)

	// So does an agent: one call fails with its name, and the other member of the rack is agent.
	s.calls++
	s.begin(siteTime, s.living(4)...)
	s.remove(2)
	s.begin(siteTime, 4)
	for i, r := range s.finish() {
		require.Equal(t, []string{"w2"}, r.Lost, "w%d: %+v", i, r.Error)
	}
	s.call(1)

	// etcd dies. Calls go on in this generation.
	s.etcd.kill()
	s.call(1)
	s.call(1)

	// No new generation: an error within the deadline, and a warning of what is waited for.
	s.remove(4)
	s.calls++
	const deadline = 20 * time.Second // warnings come after 2 s and after 4 s more, or later on a busy machine
	s.begin(deadline, s.living()...)
	for i, r := range s.finish() {
		require.Equal(t, fmt.Sprintf("%T", &elastic.WaitError{}), r.Kind, "w%d: %s", i, r.Error)
		require.True(t, r.Late)
		require.Contains(t, strings.Join(r.Warned, "\n"), "does not answer", "w%d", i)
	}

	// It comes back.
	s.etcd, _ = spawn(t, "etcd", order{Dir: filepath.Join(s.dir, "etcd"), URL: strings.TrimPrefix(s.engine, "etcd:")})
	s.calls++
	s.begin(siteTime, s.living()...)
	replies := s.finish()
	s.sums(replies, 1)
	s.call(1)

	for _, w := range s.workers {
		w.tell(order{Leave: true})
		require.Empty(t, w.reply().Error)
	}
}
