// The card beside the model: the same calls must give the same packets, replies and registers.

package cpu

import (
	"bytes"
	"flag"
	"fmt"
	"slices"
	"testing"

	"tributary/driver/frame"
	"tributary/driver/model"
	"tributary/driver/wire"
)

var seeds = flag.Uint64("seeds", 300, "play so many scripts in lock step, a third as many through byte streams, and as many through datagrams")

// heard counts what occurred in lock step: codes, kinds and counters by name.
type heard map[string]int

// tenant is what a script knows of a job.
type tenant struct {
	setup
	epoch uint16
	base  uint32 // about the first VID without a result
}

// steps is a card and the model in lock step.
type steps struct {
	t       testing.TB
	card    *Card
	model   *model.Card
	script  *script
	heard   heard
	tenants []tenant
	addrs   []uint32
	out     Packet
	want    model.Packet
	trace   []string // the last steps

	// bus accesses a register of both instead of their register buses; nil: there is no other way.
	bus func(write bool, addr uint32, value uint64) (wire.Code, uint64)
}

// twin returns the model's configuration.
func twin(c Config) model.Config {
	return model.Config{
		Lanes: c.Lanes, Ports: c.Ports, Chunk: c.Chunk, Window: c.Window, Jobs: c.Jobs, Format: c.Format, Result: c.Result,
		Sum: c.Sum, Saturate: c.Saturate, Shell: c.Shell, Link: c.Link, Latency: c.Latency, Ethernet: c.Ethernet, Parent: c.Parent,
	}
}

// newSteps returns a card and the model after their hard resets.
func newSteps(t testing.TB, cfg Config, s *script, h heard) *steps {
	t.Helper()
	card, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	reference, err := model.NewCard(twin(cfg))
	if err != nil {
		t.Fatal(err)
	}
	x := &steps{t: t, card: card, model: reference, script: s, heard: h, tenants: make([]tenant, card.Config().Jobs)}
	x.addrs = addresses(card.Config())
	return x
}

// addresses returns the addresses of all registers of a card.
func addresses(cfg Config) []uint32 {
	var addrs []uint32
	for _, r := range wire.Registers {
		if !r.PerJob() {
			addrs = append(addrs, r.Addr)
		}
	}
	for i := range wire.Counters {
		addrs = append(addrs, wire.CounterAddr(i))
	}
	for job := range cfg.Jobs {
		for _, r := range wire.Registers {
			if r.PerJob() {
				addrs = append(addrs, wire.JobAddr(r.Addr, job))
			}
		}
	}
	return append(addrs, treeAddresses(cfg)...)
}

// fail ends the test with the last steps.
func (x *steps) fail(format string, args ...any) {
	x.t.Helper()
	for _, step := range x.trace[max(0, len(x.trace)-40):] {
		x.t.Log(step)
	}
	x.t.Fatalf(format, args...)
}

// note keeps a step for a failure's report.
func (x *steps) note(format string, args ...any) {
	if len(x.trace) > 200 {
		x.trace = append(x.trace[:0], x.trace[100:]...)
	}
	x.trace = append(x.trace, fmt.Sprintf(format, args...))
}

// handle commits a packet on both.
func (x *steps) handle(port int, p *Packet) {
	x.note("port %d: %+v", port, *p)
	x.card.Handle(port, p)
	x.model.Handle(port, &model.Packet{Header: model.Header(p.Header), Payload: bytes.Clone(p.Payload), Bad: p.Bad})
	clear(p.Payload) // what the card keeps is a copy
}

// register accesses a register of both.
func (x *steps) register(write bool, addr uint32, value uint64) (wire.Code, uint64) {
	x.t.Helper()
	if x.bus != nil {
		code, got := x.bus(write, addr, value)
		x.heard["reply "+code.String()]++
		return code, got
	}
	code, got := x.card.Register(write, addr, value)
	wantCode, want := x.model.Register(write, addr, value)
	if code != wantCode || got != want {
		x.fail("register %#x, write %v %#x: %v %#x, the model has %v %#x", addr, write, value, code, got, wantCode, want)
	}
	x.heard["reply "+code.String()]++
	return code, got
}

func (x *steps) write(addr uint32, value uint64) wire.Code {
	x.t.Helper()
	x.note("write %#x %#x", addr, value)
	code, _ := x.register(true, addr, value)
	return code
}

// compare compares all registers, and lags of some rank.
func (x *steps) compare() {
	x.t.Helper()
	for _, addr := range x.addrs {
		x.register(false, addr, 0)
	}
	cfg := x.card.Config()
	job, rank := x.script.below(cfg.Jobs), x.script.below(cfg.Ports)
	for bucket := range wire.LagBuckets {
		x.register(false, wire.LagAddr(job, rank, bucket), 0)
	}
}

// next takes the next packet of both, and reports whether there is one.
func (x *steps) next(ready uint64) bool {
	x.t.Helper()
	ports, ok := x.card.Next(ready, &x.out)
	wantPorts, want := x.model.Next(ready, &x.want)
	if ok != want || ports != wantPorts {
		x.fail("next %b: %b %v %+v, the model has %b %v %+v", ready, ports, ok, x.out, wantPorts, want, x.want)
	}
	if !ok {
		return false
	}
	x.note("sent to %b: %+v", ports, x.out)
	if x.out.Header != frame.Header(x.want.Header) || !bytes.Equal(x.out.Payload, x.want.Payload) || x.out.Bad != x.want.Bad {
		x.fail("sent %+v, the model sent %+v", x.out, x.want)
	}
	x.heard[x.out.Kind.String()]++
	if x.out.Kind == wire.KindStatus {
		x.heard["status "+x.out.Code.String()]++
	} else if t := &x.tenants[x.out.Job]; int32(x.out.VID-t.base) >= 0 {
		t.base = x.out.VID + 1
	}
	return true
}

// step does what the script says next.
func (x *steps) step() {
	x.t.Helper()
	s := x.script
	switch what := s.below(64); {
	case x.card.Config().Parent && what%3 == 0:
		x.upStep()
	case what < 36:
		port, p := x.packet()
		x.handle(port, &p)
	case what < 40:
		x.burst()
	case what < 42:
		x.recall()
	case what < 52:
		ready := uint64(AllPorts)
		if s.one(2) {
			ready = uint64(s.byte()) * 0x0101010101010101
		}
		for range 1 + s.below(6) {
			if !x.next(ready) {
				break
			}
		}
	case what < 55:
		x.advance()
	case what < 57:
		x.note("reduce")
		x.card.Reduce()
		x.model.Reduce()
	case what < 59:
		if number := s.below(len(x.tenants)); !x.card.engine.jobs[number].running || s.one(8) {
			x.setUp(number)
		}
	case what < 63:
		x.access()
	case s.one(2):
		x.finish(x.job())
	case s.one(4):
		x.note("link down")
		x.card.LinkDown()
		x.model.LinkDown()
	}
	x.look()
	x.invariants()
}

// look compares what can be seen without a cycle.
func (x *steps) look() {
	x.t.Helper()
	if got, want := x.card.Pending(), x.model.Pending(); got != want {
		x.fail("pending %v, the model %v", got, want)
	}
	job, rank := x.script.byte(), x.script.byte()%66
	port, ok := x.card.PortOf(job, rank)
	wantPort, wantOK := x.model.PortOf(job, rank)
	if ok != wantOK || ok && port != wantPort {
		x.fail("rank %d of job %d at %d %v, the model has %d %v", rank, job, port, ok, wantPort, wantOK)
	}
}

// play plays a script.
func play(t testing.TB, text []byte, h heard) {
	s := &script{text}
	playOn(t, configuration(s), s, h)
}

// playOn plays the rest of a script on cards of a configuration.
func playOn(t testing.TB, cfg Config, s *script, h heard) {
	x := newSteps(t, cfg, s, h)
	each := s.one(8) // compare the registers after each step
	for number := range x.tenants {
		x.setUp(number)
	}
	for len(s.rest) > 0 {
		x.step()
		if each {
			x.compare()
		}
	}
	x.compare()
	for i, c := range wire.Counters {
		_, n := x.register(false, wire.CounterAddr(i), 0)
		h["counter "+c.Name] += int(n)
	}
	x.countUps()
}

// countUps notes the counters of the up port.
func (x *steps) countUps() {
	x.t.Helper()
	for i, c := range wire.UpCounters {
		_, n := x.register(false, wire.UpCounterAddr(i), 0)
		x.heard["counter "+c.Name] += int(n)
	}
}

func TestLockStep(t *testing.T) {
	h := heard{}
	for seed := range *seeds {
		play(t, random(seed, 6000), h)
	}
	h.hasAll(t, wire.ShellNone, "reply", "counter frames", "counter hunted", "counter header_crc")
}

// hasAll fails the test unless every kind that a card with the shell sends, every code and every
// counter have occurred, except some.
func (h heard) hasAll(t *testing.T, shell wire.Shell, except ...string) {
	t.Helper()
	t.Log(h)
	except = append(except, "counter undecided", "counter stalled", "status bad_rank", "status payload_crc")
	if shell != wire.ShellRoCE {
		except = append(except, "reply bad_connection")
	}
	if shell != wire.ShellUDP {
		except = append(except, "reply bad_member")
	}
	for _, name := range everything(shell) {
		if h[name] < 10 && !slices.Contains(except, name) {
			t.Errorf("it hardly ever happens: %s", name)
		}
	}
}

// counterNames returns the names of the counters of a card with the shell.
func counterNames(shell wire.Shell) (names []string) {
	for _, c := range wire.Counters {
		names = append(names, c.Name)
	}
	if shell == wire.ShellUDP {
		for _, c := range wire.NetworkCounters {
			names = append(names, c.Name)
		}
	}
	return names
}

// everything returns the names of what may occur in lock step with the shell.
func everything(shell wire.Shell) []string {
	names := []string{"status wait", "status send", "status done", "status overdue"}
	for _, k := range wire.Kinds {
		if k.FromCard {
			names = append(names, k.Name)
		}
	}
	for _, name := range counterNames(shell) {
		names = append(names, "counter "+name)
	}
	for _, c := range wire.Counters {
		if c.Refuse != 0 {
			names = append(names, "status "+c.Name)
		}
	}
	if shell != wire.ShellStream {
		names = append(names, "up data", "up finish")
		for _, c := range wire.UpCounters {
			names = append(names, "counter "+c.Name)
		}
	}
	for _, c := range wire.Codes {
		if shell == wire.ShellStream && (c.Code == wire.CodeBadParent || c.Code == wire.CodeBadRanks) {
			continue // cards with a byte stream are in no trees
		}
		if c.Code >= wire.CodeBadAddress || c.Code == wire.CodeBusy || c.Code == wire.CodeBadJob || c.Code == wire.CodeBadEpoch {
			names = append(names, "reply "+c.Name)
		}
	}
	return names
}

// FuzzLockStep plays scripts.
func FuzzLockStep(f *testing.F) {
	for seed := range uint64(8) {
		f.Add(random(1000+seed, 2000))
	}
	f.Fuzz(func(t *testing.T, text []byte) { play(t, text[:min(len(text), 4000)], heard{}) })
}
