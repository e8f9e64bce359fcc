package sweep

import (
	"bufio"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"tributary/driver"
	"tributary/driver/transport"
	"tributary/driver/wire"
)

// TestHostileLinks exposes one virtual card to faulty links and hosts in succession. After each
// the card must be usable.
func TestHostileLinks(t *testing.T) {
	dir := shape{lanes: 4, workers: 3, chunk: 32, window: 2}.build(t)
	for name, test := range map[string]func(*testing.T, *process){
		"garbage from a host before":  garbageBefore,
		"garbage before a good host":  garbageInFront,
		"flipped bits both ways":      flippedBits,
		"half a frame, then hung up":  halfAFrame,
		"a second host":               secondHost,
		"an interrupted reduction":    interrupted,
		"a signal in a flood":         stoppedInAFlood,
		"the card dies in the middle": killed,
		"the card is started again":   startedAgain,
	} {
		t.Run(name, func(t *testing.T) {
			for _, listen := range []string{"unix:" + filepath.Join(t.TempDir(), "card"), "tcp:127.0.0.1:0"} {
				scheme, _, _ := strings.Cut(listen, ":")
				t.Run(scheme, func(t *testing.T) { test(t, start(t, dir, listen)) })
			}
		})
	}
	t.Run("the driver's own card is killed", func(t *testing.T) { ownCardKilled(t, dir) })
	t.Run("a host dies while chunks are overdue", func(t *testing.T) { overdueForNobody(t, dir) })
}

// process is a running virtual card.
type process struct {
	cmd  *exec.Cmd
	name string // the argument of driver.Open
	dir  string // of the card
}

// start starts the virtual card of dir and waits until it listens.
func start(t *testing.T, dir, listen string, flags ...string) *process {
	t.Helper()
	p := &process{dir: dir, cmd: exec.Command(filepath.Join(dir, "sim", "build", "card"), append([]string{"--listen", listen}, flags...)...)}
	p.cmd.Stderr = os.Stderr
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.cmd.Process.Kill()
		p.cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	name, ok := strings.CutPrefix(strings.TrimSpace(line), "listening ")
	if err != nil || !ok {
		t.Fatalf("the card says %q, want its address: %v", line, err)
	}
	p.name = name
	return p
}

// dial connects to the card without the driver.
func (p *process) dial(t *testing.T) net.Conn {
	t.Helper()
	network, address, _ := strings.Cut(p.name, ":")
	conn, err := net.Dial(network, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

func deadline(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// isUsable opens the card and makes a reduction.
func (p *process) isUsable(t *testing.T) {
	t.Helper()
	ctx := deadline(t)
	var card *driver.Card
	var err error
	// The previous host may still hold the card for a moment.
	for busy := new(*driver.BusyError); ; time.Sleep(10 * time.Millisecond) {
		if card, err = driver.Open(ctx, p.name); !errors.As(err, busy) || ctx.Err() != nil {
			break
		}
	}
	if err != nil {
		t.Fatalf("the card is not usable: %v", err)
	}
	defer card.Close()
	reduceAndCompare(t, ctx, card, driver.JobConfig{})
}

// stoppedInAFlood: SIGTERM ends a card even while its host sends without a pause.
func stoppedInAFlood(t *testing.T, p *process) {
	link := p.dial(t)
	go func() {
		for flood := make([]byte, 1<<16); ; {
			if _, err := link.Write(flood); err != nil {
				return
			}
		}
	}()
	time.Sleep(200 * time.Millisecond)
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	p.ends(t, "the card goes on after SIGTERM")
}

// ends waits for the card to exit with status 0.
func (p *process) ends(t *testing.T, otherwise string) {
	t.Helper()
	ended := make(chan error, 1)
	go func() { ended <- p.cmd.Wait() }()
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(20 * time.Second):
		t.Error(otherwise)
	}
}

// overdueForNobody: a card whose host is gone stops sending notices of overdue chunks, and closes
// the connection.
func overdueForNobody(t *testing.T, dir string) {
	p := start(t, dir, "unix:"+filepath.Join(t.TempDir(), "card"), "--once")
	var link net.Conn
	transport.Register("mortal", func(context.Context, transport.Request) (transport.Conn, error) {
		link = p.dial(t)
		return link, nil
	})
	card, err := driver.Open(deadline(t), "mortal:")
	if err != nil {
		t.Fatal(err)
	}
	defer card.Close()
	told := make(chan struct{}, 1)
	job, err := card.Configure(deadline(t), driver.JobConfig{DeadlineCycles: 2048, OnOverdue: func(driver.Overdue) {
		select {
		case told <- struct{}{}:
		default:
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	over := make(chan error, 1)
	go func() { over <- job.Member(0).AllReduce(deadline(t), make([]float32, 1)) }()
	<-told
	link.Close()
	if err := <-over; err == nil {
		t.Error("a sum without the other members")
	}
	p.ends(t, "the card still serves a host that is gone")
}

// counter returns one of the card's counters.
func counter(t *testing.T, card *driver.Card, name string) uint32 {
	t.Helper()
	counters, err := card.Counters(deadline(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range counters {
		if c.Name == name {
			return c.Value
		}
	}
	t.Fatalf("no counter %s", name)
	return 0
}

// garbage returns bytes with many sync words, some followed by half a header.
func garbage(size int) []byte {
	rng := rand.New(rand.NewPCG(1, 2))
	var b []byte
	for len(b) < size {
		if rng.IntN(8) == 0 {
			b = append(b, wire.Sync[:]...)
			b = append(b, byte(rng.IntN(16)<<4|wire.Version))
		}
		b = append(b, byte(rng.Uint32()))
	}
	return b
}

func garbageBefore(t *testing.T, p *process) {
	conn := p.dial(t)
	if _, err := conn.Write(garbage(20000)); err != nil {
		t.Fatal(err)
	}
	conn.Close()
	p.isUsable(t)
}

func garbageInFront(t *testing.T, p *process) {
	conn := p.dial(t)
	if _, err := conn.Write(garbage(5000)); err != nil {
		t.Fatal(err)
	}
	card, err := driver.OpenConn(deadline(t), p.name, conn)
	if err != nil {
		t.Fatal(err)
	}
	defer card.Close()
	reduceAndCompare(t, deadline(t), card, driver.JobConfig{})
	if n := counter(t, card, "hunted"); n < 1000 {
		t.Errorf("the card counts %d hunted bytes", n)
	}
}

func halfAFrame(t *testing.T, p *process) {
	conn := p.dial(t)
	header := append(wire.Sync[:], byte(wire.KindData)<<4|wire.Version, 0, 0)
	if _, err := conn.Write(header); err != nil {
		t.Fatal(err)
	}
	conn.Close()
	p.isUsable(t)
}

// noisy flips a bit in about one of every `every` bytes, in both directions.
type noisy struct {
	net.Conn
	every int

	mu  sync.Mutex
	rng *rand.Rand
}

func (n *noisy) spoil(b []byte) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for i := range b {
		if n.rng.IntN(n.every) == 0 {
			b[i] ^= 1 << n.rng.IntN(8)
		}
	}
}

func (n *noisy) Read(b []byte) (int, error) {
	count, err := n.Conn.Read(b)
	n.spoil(b[:count])
	return count, err
}

func (n *noisy) Write(b []byte) (int, error) {
	spoiled := append([]byte(nil), b...)
	n.spoil(spoiled)
	return n.Conn.Write(spoiled)
}

func flippedBits(t *testing.T, p *process) {
	link := &noisy{Conn: p.dial(t), every: 2000, rng: rand.New(rand.NewPCG(3, 4))}
	card, err := driver.OpenConn(deadline(t), p.name, link)
	if err != nil {
		t.Fatal(err)
	}
	for range 10 {
		reduceAndCompare(t, deadline(t), card, driver.JobConfig{})
	}
	caught := counter(t, card, "header_crc") + counter(t, card, "payload_crc") + counter(t, card, "hunted")
	if caught == 0 {
		t.Error("the card counts no flipped bit")
	}
	if stats := card.LinkStats(); stats.HeaderCRC+stats.PayloadCRC+stats.Hunted == 0 {
		t.Errorf("the driver counts no flipped bit: %+v", stats)
	}
	card.Close()
	p.isUsable(t)
}

func secondHost(t *testing.T, p *process) {
	card, err := driver.Open(deadline(t), p.name)
	if err != nil {
		t.Fatal(err)
	}
	second, err := driver.Open(deadline(t), p.name)
	if busy := new(*driver.BusyError); !errors.As(err, busy) {
		t.Errorf("a second host gets %v, want a BusyError", err)
	}
	if second != nil {
		second.Close()
	}
	reduceAndCompare(t, deadline(t), card, driver.JobConfig{})
	card.Close()
	p.isUsable(t)
}

// interrupted sends Ctrl-C to a long reduction of the command.
func interrupted(t *testing.T, p *process) {
	dir := t.TempDir()
	args := []string{"reduce", "-card", p.name, "-o", filepath.Join(dir, "sum.npy")}
	for range 3 {
		args = append(args, longArray(t))
	}
	cmd := exec.Command(tributary, args...)
	var said strings.Builder
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Second)
	cmd.Process.Signal(os.Interrupt)
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err := <-ended:
		if exit := new(*exec.ExitError); !errors.As(err, exit) || (*exit).ExitCode() != 1 {
			t.Errorf("it ends with %v, want exit status 1: %s", err, said.String())
		}
	case <-time.After(20 * time.Second):
		cmd.Process.Kill()
		t.Fatalf("it still runs 20 s after Ctrl-C: %s", said.String())
	}
	if !strings.Contains(said.String(), "no output file was written") {
		t.Errorf("it says %q", said.String())
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("it leaves %v", left)
	}
	p.isUsable(t)
}

// longArray returns the name of a .npy file of four million zeros.
func longArray(t *testing.T) string {
	const elements = 4 << 20
	header := "{'descr': '<f4', 'fortran_order': False, 'shape': (4194304,), }"
	header += strings.Repeat(" ", 128-10-len(header)-1) + "\n"
	name := filepath.Join(t.TempDir(), "long.npy")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := io.WriteString(f, "\x93NUMPY\x01\x00\x76\x00"+header); err != nil {
		t.Fatal(err)
	}
	if err := f.Truncate(int64(128 + 4*elements)); err != nil {
		t.Fatal(err)
	}
	return name
}

func killed(t *testing.T, p *process) {
	card, err := driver.Open(deadline(t), p.name)
	if err != nil {
		t.Fatal(err)
	}
	defer card.Close()
	job, err := card.Configure(deadline(t), driver.JobConfig{})
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		time.Sleep(200 * time.Millisecond)
		p.cmd.Process.Signal(syscall.SIGKILL)
	}()
	array := make([]float32, 4<<20)
	began := time.Now()
	err = job.Reduce(deadline(t), array, [][]float32{array, array, array})
	if died := new(*driver.DiedError); !errors.As(err, died) {
		t.Errorf("Reduce answers %v, want a DiedError", err)
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("Reduce took %v to notice", took)
	}
}

// startedAgain kills the card in the middle of a reduction with -carry-on, and restarts it at the
// same address.
func startedAgain(t *testing.T, p *process) {
	carriesOn(t, p.name, func() {
		p.cmd.Process.Kill()
		p.cmd.Wait()
		if path, ok := strings.CutPrefix(p.name, "unix:"); ok {
			os.Remove(path)
		}
		p = start(t, p.dir, p.name)
	})
}

// ownCardKilled kills the virtual card that the driver has started.
func ownCardKilled(t *testing.T, dir string) {
	carriesOn(t, "sim:"+dir, func() {
		running, err := filepath.Glob("/proc/[0-9]*/cmdline")
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range running {
			if line, err := os.ReadFile(file); err == nil && strings.HasPrefix(string(line), filepath.Join(dir, "sim", "build", "card")+"\x00") {
				pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
				if err != nil {
					t.Fatal(err)
				}
				syscall.Kill(pid, syscall.SIGKILL)
				return
			}
		}
		t.Fatal("the card does not run")
	})
}

// carriesOn makes a reduction on a card that is killed twice on the way. Every bit must equal the
// model's.
func carriesOn(t *testing.T, name string, kill func()) {
	const times = 2
	card, err := driver.Open(deadline(t), name)
	if err != nil {
		t.Fatal(err)
	}
	defer card.Close()
	job, err := card.Configure(deadline(t), driver.JobConfig{CarryOn: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	info, ports := card.Info(), job.Config().Ports
	inputs := someInputs(info, 1, len(ports), 50_000)
	killed := 0
	err = job.ReduceBytes(deadline(t), inputs[1], inputs, driver.WithProgress(func(done, total int) {
		if killed < times && done > (killed+1)*total/(times+1) {
			killed++
			kill()
		}
	}))
	if err != nil {
		t.Fatal(err)
	}
	if job.Outages() != times {
		t.Errorf("%d outages, want %d", job.Outages(), times)
	}
	fresh := someInputs(info, 1, len(ports), 50_000) // the sum has overwritten the first inputs
	if err := compare(info, ports, fresh, inputs[1]); err != nil {
		t.Fatal(err)
	}
	if err := job.Close(deadline(t)); err != nil {
		t.Fatal(err)
	}
}
