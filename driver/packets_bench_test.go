package driver_test

// What the driver costs beside the system calls that any program needs for its packets.

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/net/ipv4"

	"tributary/driver"
	"tributary/driver/frame"
	"tributary/driver/model"
	"tributary/driver/virtual/udp"
	"tributary/driver/wire"
)

const (
	benchElements = 256 // 1 KiB of fp32
	benchChunks   = 4096
	benchWindow   = 64
)

// mirrorVariable makes this test program the far end of BenchmarkPackets.
const mirrorVariable = "TRIBUTARY_TEST_MIRROR"

// BenchmarkPackets sends packets of 1 KiB to a far end in another process and takes its results: by
// the driver, and by a bare loop of ReadBatch and WriteBatch, which neither checks nor copies anything.
// MB/s are those of payload, both ways, in a second of this process's CPU time.
func BenchmarkPackets(b *testing.B) {
	card := startMirror(b)
	b.Run("driver", func(b *testing.B) { benchDriver(b, card) })
	b.Run("bare", func(b *testing.B) { benchBare(b, strings.TrimPrefix(card, "udp:")) })
}

// cpuTime returns the CPU time of this process.
func cpuTime(b *testing.B) time.Duration {
	var use syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &use); err != nil {
		b.Fatal(err)
	}
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}

// reportPackets reports what b.N packets each way have cost since.
func reportPackets(b *testing.B, since time.Duration) {
	b.ReportMetric(float64(b.N)*2*4*benchElements/1e6/(cpuTime(b)-since).Seconds(), "MB/s")
}

func benchDriver(b *testing.B, name string) {
	card := openName(b, name)
	job := configure(b, card, driver.JobConfig{Workers: 1, Chunk: benchElements, Window: benchWindow})
	sum := make([]float32, benchChunks*benchElements)
	since := cpuTime(b)
	for left := b.N; left > 0; left -= benchChunks {
		n := min(left, benchChunks) * benchElements
		if err := job.Reduce(context.Background(), sum[:n], [][]float32{sum[:n]}); err != nil {
			b.Fatal(err)
		}
	}
	reportPackets(b, since)
	if s := job.Stats(); s.Asked > s.Sent/100 {
		b.Logf("%d packets lost of %d", s.Asked, s.Sent)
	}
}

func benchBare(b *testing.B, address string) {
	socket, err := net.Dial("udp4", address)
	if err != nil {
		b.Fatal(err)
	}
	defer socket.Close()
	conn := ipv4.NewPacketConn(socket.(*net.UDPConn))
	data := frame.AppendPaddedDatagram(nil, &frame.Header{Kind: wire.KindData, Format: wire.FP32, Length: benchElements}, nil)
	out, in := make([]ipv4.Message, benchWindow), make([]ipv4.Message, benchWindow)
	for i := range out {
		out[i].Buffers, in[i].Buffers = [][]byte{data}, [][]byte{make([]byte, frame.MaxDatagramBytes)}
	}
	since := cpuTime(b)
	for sent, came := 0, 0; came < b.N; {
		for end := min(b.N, came+benchWindow); sent < end; {
			n, err := conn.WriteBatch(out[:end-sent], 0)
			if err != nil {
				b.Fatal(err)
			}
			sent += n
		}
		_ = conn.SetReadDeadline(time.Now().Add(time.Second))
		n, err := conn.ReadBatch(in, 0)
		if err != nil {
			n = sent - came // lost
		}
		came += n
	}
	reportPackets(b, since)
}

// startMirror starts the far end, and returns its name.
func startMirror(b *testing.B) string {
	mirror := exec.Command(os.Args[0], "-test.run=^TestMirror$")
	mirror.Env = append(os.Environ(), mirrorVariable+"=1")
	mirror.Stderr = os.Stderr
	in, err := mirror.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := mirror.StdoutPipe()
	if err == nil {
		err = mirror.Start()
	}
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		in.Close() // which ends it
		mirror.Wait()
	})
	name, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		b.Fatal(err)
	}
	return strings.TrimSpace(name)
}

// TestMirror is the far end of BenchmarkPackets: a model card whose data come back at once, as results
// of one member.
func TestMirror(t *testing.T) {
	if os.Getenv(mirrorVariable) == "" {
		t.Skip("it is the far end of BenchmarkPackets")
	}
	socket, err := udp.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	cfg := model.Config{Lanes: 4, Ports: 1, Chunk: benchElements, Window: benchWindow, Shell: wire.ShellUDP, Link: 64}
	card, err := model.NewEndpoint(cfg, socket.Address())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	fmt.Println(socket.Name())
	if err := socket.Serve(ctx, &mirror{Endpoint: card, check: frame.NewDatagramChecker(frame.ToCard)}); err != nil {
		t.Fatal(err)
	}
}

// mirror is a card that sends data back.
type mirror struct {
	*model.Endpoint
	check *frame.DatagramChecker
	back  []byte
	to    wire.Address
}

func (m *mirror) Receive(b []byte, from wire.Address, mark wire.ECN) {
	var f frame.Frame
	if wire.Kind(b[0]>>4) != wire.KindData || !m.check.Check(b, &f) {
		m.Endpoint.Receive(b, from, mark)
		return
	}
	h := frame.Header{Kind: wire.KindResult, Flags: f.Flags, Job: f.Job, Format: f.Format, Epoch: f.Epoch, VID: f.VID, Length: f.Length, Mask: 1, Receivers: 1}
	m.back, m.to = frame.AppendDatagram(m.back[:0], &h, f.Payload), from
}

func (m *mirror) Send(dst []byte) ([]byte, wire.Address, wire.ECN, bool) {
	if len(m.back) == 0 {
		return m.Endpoint.Send(dst)
	}
	dst = append(dst, m.back...)
	m.back = m.back[:0]
	return dst, m.to, wire.ECT0, true
}
