package daemon_test

// Trees of cards behind a daemon (SPEC.md, section 13).

import (
	"errors"
	"fmt"
	"math"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"tributary/driver"
	"tributary/driver/daemon"
	"tributary/driver/daemon/protocol"
	"tributary/driver/frame"
	"tributary/driver/virtual/udp"
	"tributary/driver/wire"
	"tributary/verify/reference/oracle"
)

// grove is a tree of a test: the root has a worker and two cards; the first has two workers, the other one
// a worker and a card with two. All ports are in use.
type grove struct {
	cards  []*networked // root, left, middle, below the middle
	tree   *driver.SharedTree
	server *daemon.Server
	path   string
}

// nested is the sum of the grove's members.
func nested(sum func(x ...uint32) uint32, x []uint32) uint32 {
	return sum(x[0], sum(x[1], x[2]), sum(x[3], sum(x[4], x[5])))
}

// grow runs a daemon with a grove, whose cards it opens with options.
func grow(t testing.TB, o daemon.Options, opts ...driver.Option) *grove {
	t.Helper()
	g := &grove{path: socket(t)}
	var cards []driver.TreeCard
	for i, kind := range []string{
		"model:parent=true,workers=3,lanes=4,chunk=320,window=32,jobs=4",
		"cpu:parent=true,workers=2,lanes=8,chunk=336,window=64,jobs=2",
		"model:parent=true,workers=2,lanes=4,chunk=320,window=32,jobs=2",
		"cpu:parent=true,workers=2,lanes=16,chunk=320,window=16,jobs=2",
	} {
		g.cards = append(g.cards, newNetworkedAt(t, udp.OwnLoopback()+":0", kind))
		cards = append(cards, driver.TreeCard{
			Card:   g.cards[i].open(append(opts, driver.WithReopen(func(*driver.DiedError) {}))...),
			Parent: []int{-1, 0, 0, 2}[i], Workers: []int{1, 2, 1, 2}[i],
		})
	}
	var err error
	if g.tree, err = driver.ShareTree("grove", cards); err != nil {
		t.Fatal(err)
	}
	g.server = daemon.New(map[string]daemon.Card{"card": g.tree}, o)
	listen(t, g.server, "unix:"+g.path)
	return g
}

// job makes a job whose members have a session each.
func (g *grove) job(t testing.TB, seed int, cfg driver.JobConfig) (*driver.Job, *team) {
	t.Helper()
	sessions := openAll(t, g.path, 6)
	cfg.Here = []int{0}
	j, err := sessions[0].Configure(testContext(t), cfg)
	if err != nil {
		t.Fatal(err)
	}
	m := newTeam(t, j, sessions, seed)
	m.shape = nested
	return j, m
}

// TestTree: members in six sessions get the nested sum of a tree of cards of both kinds, bit for bit, in two
// jobs at once and job after job.
func TestTree(t *testing.T) {
	for _, o := range []daemon.Options{{}, {Limits: daemon.Limits{Memory: 1}}} { // with shared memory, and without
		g := grow(t, o)
		ctx := testContext(t)
		for round := range 2 {
			var all sync.WaitGroup
			for job := range 2 {
				all.Go(func() {
					_, m := g.job(t, 2*round+job, driver.JobConfig{})
					calls := []int{1, 700}
					if o.Limits.Memory == 0 && round == 0 && job == 0 {
						calls = append(calls, 262_001) // two blocks
					}
					for _, elements := range calls {
						if err := m.sum(ctx, elements); err != nil {
							t.Error(err)
							return
						}
					}
					if err := m.finish(ctx); err != nil {
						t.Error(err)
					}
				})
			}
			all.Wait()
		}
	}
}

// TestTreeInfo: clients find one card with the workers of all, and what every card takes.
func TestTreeInfo(t *testing.T) {
	g := grow(t, daemon.Options{})
	c := open(t, g.path)
	has := c.Info()
	has.Name, has.ConfigHash, has.Latency = "", 0, 0
	want := driver.Info{Version: wire.Version, Lanes: 16, Ports: 6, Chunk: 320, Window: 16, Jobs: 2,
		Format: wire.FP32, Result: wire.FP32, Sum: wire.SumTree, Shell: wire.ShellNone, Arrays: true}
	if has != want {
		t.Errorf("%+v\nwant %+v", has, want)
	}
	if !c.IsTree() || open(t, serve(t, daemon.Options{})).IsTree() {
		t.Error("a card is no tree, or a tree none")
	}
	sum, err := c.Nested()
	if err != nil {
		t.Fatal(err)
	}
	m := &team{oracle: fp32()}
	x := make([]uint32, 6)
	for i := range x {
		x[i] = math.Float32bits([]float32{0, 1e8, 5, 5, -1e8, 0}[i]) // 8 is the last place of 1e8
	}
	// 5 + 1e8 rounds up on the left, 5 - 1e8 in the middle; the flat sum rounds once, and is 8.
	if has, want := sum(x), nested(m.sumOf, x); has != want || want != math.Float32bits(16) {
		t.Errorf("nested sum %x, want %x", has, want)
	}
}

// fp32 is the oracle of the grove's cards.
func fp32() *oracle.Oracle { return oracle.New(wire.SumTree, wire.FP32, wire.FP32, false) }

// TestTreeCardDies: a card in the middle dies. Members in all sessions learn its name, also one that calls
// later. When it is back, the next job works.
func TestTreeCardDies(t *testing.T) {
	ctx := testContext(t)
	g := grow(t, daemon.Options{})
	_, m := g.job(t, 1, driver.JobConfig{})
	if err := m.sum(ctx, 100); err != nil {
		t.Fatal(err)
	}
	var calls []*driver.Pending
	for _, member := range m.members[:5] {
		p, err := member.StartAllReduce(ctx, make([]float32, 10_000))
		if err != nil {
			t.Fatal(err)
		}
		calls = append(calls, p)
	}
	awaitMetric(t, g.server, `tributary_lag_chunks{card="card",job="0",rank="5"}`, 32)
	middle := g.cards[2]
	middle.cut()
	for rank, p := range calls {
		var died *driver.DiedError
		if err := p.Wait(ctx); !errors.As(err, &died) || !strings.Contains(err.Error(), middle.name) {
			t.Errorf("rank %d got %v", rank, err)
		}
	}
	var died *driver.DiedError
	if err := m.members[5].AllReduce(ctx, make([]float32, 10_000)); !errors.As(err, &died) || !strings.Contains(err.Error(), middle.name) {
		t.Errorf("the member without a call got %v", err)
	}
	if status, text := page(t, g.server, "/readyz"); status != 503 {
		t.Errorf("ready without a card: %d, %s", status, text)
	}
	if _, text := page(t, g.server, "/metrics"); !strings.Contains(text, "tributary_card_up{card=\"card\"} 0\n") ||
		!strings.Contains(text, fmt.Sprintf("tributary_tree_card_up{card=\"card\",device=%q} 0\n", middle.name)) ||
		!strings.Contains(text, fmt.Sprintf("tributary_tree_card_up{card=\"card\",device=%q} 1\n", g.cards[3].name)) {
		t.Error(text)
	}
	middle.power(middle.name[len("udp:"):])
	_, m = g.job(t, 2, driver.JobConfig{}) // it waits for the card
	if err := errors.Join(m.sum(ctx, 1000), m.finish(ctx)); err != nil {
		t.Error(err)
	}
	awaitReadyz(t, g.server, "ready")
}

// TestTreeCardIsSilent: a card says nothing any more, without a word of the network. Members learn its name,
// though their calls have time.
func TestTreeCardIsSilent(t *testing.T) {
	t.Parallel()
	ctx := testContext(t)
	g := grow(t, daemon.Options{}, driver.WithTimeout(5*time.Second))
	_, m := g.job(t, 1, driver.JobConfig{})
	if err := m.sum(ctx, 100); err != nil {
		t.Fatal(err)
	}
	silent := g.cards[3]
	silent.cut()
	nobody := bind(t, func() (net.PacketConn, error) { return net.ListenPacket("udp4", silent.name[len("udp:"):]) })
	defer nobody.Close()
	during, err := m.start(ctx, 1000)
	if err != nil {
		t.Fatal(err)
	}
	for rank, p := range during.pending {
		var died *driver.DiedError
		if err := p.Wait(ctx); !errors.As(err, &died) || !strings.Contains(err.Error(), silent.name) {
			t.Errorf("rank %d got %v", rank, err)
		}
	}
}

// TestTreeCarriesOn: cards die and come back while members sum. Calls do not notice, programs hear of it, and
// no bit changes.
func TestTreeCarriesOn(t *testing.T) {
	for _, victims := range [][]int{{0}, {2}, {3}, {1, 2}} {
		t.Run(fmt.Sprint(victims), func(t *testing.T) {
			t.Parallel()
			ctx := testContext(t)
			g := grow(t, daemon.Options{})
			outages := make(chan driver.Outage, 100)
			j, m := g.job(t, victims[0], driver.JobConfig{CarryOn: patience, OnOutage: func(o driver.Outage) { outages <- o }})
			if err := m.sum(ctx, 100); err != nil {
				t.Fatal(err)
			}
			epoch := j.Epoch()
			during, err := m.start(ctx, 50_000)
			if err != nil {
				t.Fatal(err)
			}
			for _, i := range victims {
				g.cards[i].cut()
			}
			gone := <-outages
			if gone.Epoch != 0 || gone.Patience != patience || !namesOne(gone.Cause.Error(), g, victims) {
				t.Errorf("%+v: %v", gone, gone.Cause)
			}
			if _, text := page(t, g.server, "/metrics"); !strings.Contains(text, "tributary_jobs{card=\"card\",state=\"stopped\"} 1\n") {
				t.Error(text)
			}
			queued, err := m.start(ctx, 5000) // in the outage
			if err != nil {
				t.Fatal(err)
			}
			for _, i := range victims {
				g.cards[i].power(g.cards[i].name[len("udp:"):])
			}
			if back := <-outages; back.Epoch == 0 || back.Epoch == epoch || back.Away <= 0 {
				t.Errorf("%+v", back)
			}
			if err := errors.Join(during.wait(ctx), queued.wait(ctx), m.sum(ctx, 77), m.finish(ctx)); err != nil {
				t.Error(err)
			}
			if j.Outages() == 0 {
				t.Error("the job counts no outage")
			}
			for n := 0; len(outages) > 0; n++ { // further ones, while several cards come back
				if o := <-outages; (o.Epoch == 0) != (n%2 == 0) {
					t.Errorf("%+v comes %d. after a pair", o, n)
				}
			}
		})
	}
}

// namesOne reports whether a text names a card of some.
func namesOne(text string, g *grove, cards []int) bool {
	return slices.ContainsFunc(cards, func(i int) bool { return strings.Contains(text, g.cards[i].name) })
}

// TestTreeIsNotBack: a card does not come back in time. All members learn that, with its name.
func TestTreeIsNotBack(t *testing.T) {
	ctx := testContext(t)
	g := grow(t, daemon.Options{})
	_, m := g.job(t, 1, driver.JobConfig{CarryOn: 50 * time.Millisecond})
	if err := m.sum(ctx, 100); err != nil {
		t.Fatal(err)
	}
	var calls []*driver.Pending
	for _, member := range m.members[:5] { // not complete without the last one
		p, err := member.StartAllReduce(ctx, make([]float32, 50_000))
		if err != nil {
			t.Fatal(err)
		}
		calls = append(calls, p)
	}
	g.cards[3].cut()
	for rank, p := range calls {
		var lost *driver.LostError
		if err := p.Wait(ctx); !errors.As(err, &lost) || !strings.Contains(err.Error(), g.cards[3].name) {
			t.Errorf("rank %d got %v", rank, err)
		}
	}
}

// TestTreeDaemonDies: the sums are with the daemon. When it dies, members that carry on learn from the next
// one that their job is over.
func TestTreeDaemonDies(t *testing.T) {
	g := grow(t, daemon.Options{})
	c := attach(t, g.path, &protocol.Hello{Version: 1})
	join := &protocol.Join{Nonce: 7, Rank: new(uint32(3)), Parameters: driver.JobConfig{Workers: 6, Chunk: 16, Window: 1, CarryOn: patience}.Parameters()}
	c.send(&protocol.ToDaemon{Message: &protocol.ToDaemon_Rejoin{Rejoin: &protocol.Rejoin{Join: join, Epoch: new(uint32(5))}}})
	if ended := c.receive().GetEnded(); ended.GetNonce() != 7 || ended.GetCause() != protocol.Cause_CARD_LOST || !strings.Contains(ended.GetText(), "with the daemon") {
		t.Errorf("%v", ended)
	}
}

// TestTreeRefuses: a job has all workers of the tree, at its places, and no partial sums.
func TestTreeRefuses(t *testing.T) {
	g := grow(t, daemon.Options{})
	c := open(t, g.path)
	for _, x := range []struct {
		cfg        driver.JobConfig
		what, text string
	}{
		{driver.JobConfig{Workers: 5}, "workers", "5 workers, but the tree has 6"},
		{driver.JobConfig{Ports: []int{1, 2, 3}}, "workers", "3 workers, but the tree has 6"},
		{driver.JobConfig{Partial: true, Deadline: 1e9}, "partial sums", "a tree of cards has none"},
	} {
		var wrong *driver.InputError
		if _, err := c.Configure(testContext(t), x.cfg); !errors.As(err, &wrong) || wrong.What != x.what || !strings.Contains(wrong.Why, x.text) {
			t.Errorf("%+v: %v", x.cfg, err)
		}
	}
	j, err := c.Configure(testContext(t), driver.JobConfig{Chunk: 32, Here: []int{0}})
	if err != nil {
		t.Fatal(err)
	}
	var differs *driver.InputError
	if _, err := driver.Join(testContext(t), j.Ticket(), 1, driver.WithJob(driver.JobConfig{Workers: 6, Chunk: 16})); !errors.As(err, &differs) || differs.What != "chunk" {
		t.Errorf("a member that expects other chunks: %v", err)
	}
}

// TestTreeRegisters: what clients read of a job is that of the whole tree, with global ranks.
func TestTreeRegisters(t *testing.T) {
	ctx := testContext(t)
	g := grow(t, daemon.Options{})
	c := open(t, g.path)
	j, err := c.Configure(ctx, driver.JobConfig{})
	if err != nil {
		t.Fatal(err)
	}
	in := make([][]float32, 6)
	for rank := range in {
		in[rank] = slices.Repeat([]float32{math.MaxFloat32 / 4}, 1000)
	}
	in[4][700] = float32(math.NaN())
	sum := make([]float32, 1000)
	if err := j.Reduce(ctx, sum, in); err != nil {
		t.Fatal(err)
	}
	e, err := j.Exceptions(ctx)
	if err != nil {
		t.Fatal(err)
	}
	// The NaN counts at three cards, the overflow of the other elements at the root, and what is no number there is the root's.
	want := driver.Exceptions{
		NonfiniteIn:  driver.Exception{Count: 3, VID: 2, Rank: 4},
		NonfiniteOut: driver.Exception{Count: 1000},
		Overflow:     driver.Exception{Count: 999},
	}
	if e != want {
		t.Errorf("%+v, want %+v", e, want)
	}
	lags, err := c.Lags(ctx, j.Number())
	if err != nil || len(lags) != 6 {
		t.Fatal(len(lags), err)
	}
	for rank, l := range lags {
		if l.Total() != 4 {
			t.Errorf("rank %d has %d latenesses", rank, l.Total())
		}
	}
	states, err := c.Jobs(ctx)
	if err != nil || len(states) != 2 || !states[0].SetUp || !slices.Equal(states[0].Ports, []int{0, 1, 2, 3, 4, 5}) || len(states[0].Finished) != 0 {
		t.Errorf("%+v (%v)", states, err)
	}
	if err := j.Close(ctx); err != nil {
		t.Fatal(err)
	}
	if states, err = c.Jobs(ctx); err != nil || states[0].SetUp {
		t.Errorf("%+v (%v)", states, err)
	}
}

// TestTreeReset: a client with leave resets all cards, which ends the tree's job. No other register can be
// written.
func TestTreeReset(t *testing.T) {
	ctx := testContext(t)
	g := grow(t, daemon.Options{Admin: true})
	_, m := g.job(t, 1, driver.JobConfig{})
	if err := m.sum(ctx, 100); err != nil {
		t.Fatal(err)
	}
	admin := attach(t, g.path, &protocol.Hello{Version: 1, Admin: true})
	for addr, want := range map[uint32]wire.Code{wire.RegLease: wire.CodeBusy, wire.RegReset: wire.CodeDone} {
		admin.write(frame.Append(nil, &frame.Header{Kind: wire.KindRegWrite, VID: addr, Mask: 1}, nil))
		if f := admin.read(); f.Kind != wire.KindReply || f.VID != addr || f.Code != want {
			t.Errorf("write of %x: %+v", addr, f.Header)
		}
	}
	for i, member := range g.tree.Cards() {
		states, err := member.Card.Jobs(ctx)
		if err != nil || states[0].SetUp {
			t.Errorf("card %d: %+v (%v)", i, states, err)
		}
	}
	if err := m.sum(ctx, 100); err == nil || !strings.Contains(err.Error(), "the card was reset") {
		t.Errorf("a sum after the reset: %v", err)
	}
}

// TestTreeOf64: a session has all 64 seats of a job at two cards of 32 ports below a root, and every rank is in
// the sum.
func TestTreeOf64(t *testing.T) {
	ctx := testContext(t)
	var cards []driver.TreeCard
	for i, ports := range []int{2, 32, 32} {
		card := newNetworkedAt(t, udp.OwnLoopback()+":0", fmt.Sprintf("cpu:parent=true,workers=%d,chunk=2048", ports))
		cards = append(cards, driver.TreeCard{Card: card.open(), Parent: []int{-1, 0, 0}[i], Workers: []int{0, 32, 32}[i]})
	}
	tree, err := driver.ShareTree("grove", cards)
	if err != nil {
		t.Fatal(err)
	}
	path := socket(t)
	listen(t, daemon.New(map[string]daemon.Card{"card": tree}, daemon.Options{}), "unix:"+path)
	j, err := open(t, path).Configure(ctx, driver.JobConfig{})
	if err != nil {
		t.Fatal(err)
	}
	if chunk := j.Config().Chunk; chunk != 1008 { // whose frame fits into 4095 bytes, as a client demands
		t.Errorf("chunks of %d elements", chunk)
	}
	m := newTeam(t, j, slices.Repeat([]*driver.Card{j.Card()}, 64), 1)
	m.shape = func(sum func(x ...uint32) uint32, x []uint32) uint32 { return sum(sum(x[:32]...), sum(x[32:]...)) }
	if err := errors.Join(m.sum(ctx, 3000), j.Close(ctx)); err != nil {
		t.Error(err)
	}
}
