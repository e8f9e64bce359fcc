package frames_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tributary/driver"
	"tributary/driver/frame"
	"tributary/driver/transport"
	"tributary/driver/virtual/clock"
	"tributary/driver/virtual/ethernet"
	"tributary/driver/virtual/frameport"
	"tributary/driver/wire"
	"tributary/verify/system/frames"
)

// cards are the cards in software.
var cards = []string{"model:workers=4,lanes=4,chunk=64", "cpu:workers=4,lanes=4,chunk=64"}

// cardAt is where the card is.
var cardAt = netip.MustParseAddrPort("192.168.84.66:21570")

// wired runs a card at unix: ports until the test ends, and returns their paths.
func wired(t *testing.T, name string, ports int) (paths []string) {
	t.Helper()
	endpoint, err := driver.NewNetworkCard(name, frames.CardAddress, ports)
	require.NoError(t, err)
	card, err := ethernet.New(endpoint, ports)
	require.NoError(t, err)
	dir := t.TempDir()
	var open []frameport.Port
	for i := range ports {
		paths = append(paths, filepath.Join(dir, fmt.Sprint(i)))
		port, err := frameport.Open("unix:" + paths[i])
		require.NoError(t, err)
		open = append(open, port)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- frameport.Serve(ctx, card, clock.Start(card), open) }()
	t.Cleanup(func() {
		cancel()
		assert.NoError(t, <-ended)
		for _, path := range paths {
			assert.NoFileExists(t, path)
		}
	})
	return paths
}

// attach connects host n, 192.168.84.n, to a port until the test ends.
func attach(t *testing.T, path string, n byte) *frames.Host {
	t.Helper()
	h, err := frames.Attach(path, net.HardwareAddr{0x06, 0, 0, 0, 0, n}, net.IPv4(192, 168, 84, n))
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, h.Close()) })
	return h
}

// dial opens a socket of a host to the card.
func dial(t *testing.T, h *frames.Host) *frames.Socket {
	t.Helper()
	s, err := h.Dial(t.Context(), cardAt)
	require.NoError(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

// random returns arrays of small integers, whose sums are exact, and their sum.
func random(seed uint64, workers, n int) (in [][]float32, sum []float32) {
	rng := rand.New(rand.NewPCG(seed, 0))
	sum = make([]float32, n)
	for range workers {
		a := make([]float32, n)
		for i := range a {
			a[i] = float32(rng.IntN(1<<16) - 1<<15)
			sum[i] += a[i]
		}
		in = append(in, a)
	}
	return in, sum
}

// reduces runs a reduction of the driver through a socket.
func reduces(t *testing.T, s *frames.Socket, seed uint64) {
	t.Helper()
	card, err := driver.OpenPackets(t.Context(), "frames:", s)
	require.NoError(t, err)
	defer card.Close()
	job, err := card.Configure(t.Context(), driver.JobConfig{Workers: 4})
	require.NoError(t, err)
	in, want := random(seed, 4, 10_000)
	got := make([]float32, len(want))
	require.NoError(t, job.Reduce(t.Context(), got, in))
	assert.Equal(t, want, got)
	require.NoError(t, job.Close(t.Context()))
}

// TestOneArmed: the driver reduces through one Ethernet port, one owner after another.
func TestOneArmed(t *testing.T) {
	for _, name := range cards {
		h := attach(t, wired(t, name, 1)[0], 1)
		for seed := range uint64(2) {
			reduces(t, dial(t, h), seed)
		}
		assert.Empty(t, h.Others)
	}
}

// exchange sends a packet, and returns the next that comes.
func exchange(t *testing.T, s *frames.Socket, h frame.Header, payload []byte) (frame.Header, []byte) {
	t.Helper()
	send(t, s, h, payload)
	return receive(t, s)
}

// send sends a packet.
func send(t *testing.T, s *frames.Socket, h frame.Header, payload []byte) {
	t.Helper()
	d := frame.AppendDatagram(nil, &h, payload)
	require.NoError(t, s.WritePackets(d, []int{len(d)}))
}

// receive returns the next packet of the card.
func receive(t *testing.T, s *frames.Socket) (frame.Header, []byte) {
	t.Helper()
	batch := []transport.Packet{{Bytes: make([]byte, 0, 1<<16)}}
	_, err := s.ReadPackets(batch)
	require.NoError(t, err)
	var f frame.Frame
	check := frame.NewDatagramChecker(frame.FromCard)
	require.True(t, check.Check(batch[0].Bytes, &f), "%x", batch[0].Bytes)
	return f.Header, bytes.Clone(f.Payload)
}

// reads reads a register of the card.
func reads(t *testing.T, s *frames.Socket, addr uint32) uint64 {
	t.Helper()
	reply, _ := exchange(t, s, frame.Header{Kind: wire.KindRegRead, VID: addr}, nil)
	require.Equal(t, wire.CodeDone, reply.Code)
	return reply.Mask
}

// writes writes a register of the card.
func writes(t *testing.T, s *frames.Socket, addr uint32, value uint64) {
	t.Helper()
	reply, _ := exchange(t, s, frame.Header{Kind: wire.KindRegWrite, VID: addr, Mask: value}, nil)
	require.Equal(t, wire.CodeDone, reply.Code, "%#x", addr)
}

// TestInPath: each member is behind its own Ethernet port, as is the owner. Meanwhile other frames pass
// between all ports, byte for byte and in their order.
func TestInPath(t *testing.T) {
	for _, name := range cards {
		t.Run(name, func(t *testing.T) {
			paths := wired(t, name, 5)
			owner := dial(t, attach(t, paths[0], 1))
			var members []*frames.Socket
			var hosts []*frames.Host
			for n := range 4 {
				hosts = append(hosts, attach(t, paths[1+n], byte(2+n)))
				members = append(members, dial(t, hosts[n]))
			}
			epoch := setUp(t, owner, members)
			for vid := range uint32(50) {
				for n, h := range hosts { // to the next host, and to one that nobody knows
					require.NoError(t, h.Send(passing(h, hosts[(n+1)%4].MAC, vid)))
				}
				in, sum := random(uint64(vid), 4, 64)
				for rank, m := range members {
					send(t, m, frame.Header{Kind: wire.KindData, Format: wire.FP32, Rank: uint8(rank), Epoch: epoch, VID: vid, Length: 64}, floats(in[rank]))
				}
				for _, m := range members {
					h, payload := receive(t, m)
					require.Equal(t, wire.KindResult, h.Kind, "%+v", h)
					require.Equal(t, vid, h.VID)
					require.Equal(t, floats(sum), payload)
				}
			}
			for n := range hosts {
				from := hosts[(n+3)%4]
				for vid := range uint32(50) {
					require.Equal(t, passing(from, hosts[n].MAC, vid), <-next(hosts[n], from))
				}
			}
			assert.EqualValues(t, 0, reads(t, owner, counter("stranger")))
			assert.EqualValues(t, 0, reads(t, owner, counter("dropped")))
		})
	}
}

// next returns the host's frames from another; frames that were flooded from third hosts are none.
func next(h, from *frames.Host) chan []byte {
	for {
		f := <-h.Others
		if bytes.Equal(f[6:12], from.MAC) && bytes.Equal(f[:6], h.MAC) {
			c := make(chan []byte, 1)
			c <- f
			return c
		}
	}
}

// passing is a frame of another protocol.
func passing(from *frames.Host, to net.HardwareAddr, n uint32) []byte {
	return frames.Strange(from.MAC, to, binary.BigEndian.AppendUint32(bytes.Repeat([]byte{7}, int(n)*20), n)...)
}

// counter returns the register of a counter.
func counter(name string) uint32 {
	for i, c := range wire.CountersOf(wire.ShellUDP) {
		if c.Name == name {
			return wire.CounterAddr(i)
		}
	}
	panic(name)
}

// floats returns the bytes of fp32 elements.
func floats(a []float32) (b []byte) {
	for _, x := range a {
		b, _ = binary.Append(b, binary.LittleEndian, x)
	}
	return b
}

// setUp sets job 0 up with chunks of 64 elements, from VID 0 on.
func setUp(t *testing.T, owner *frames.Socket, members []*frames.Socket) (epoch uint16) {
	t.Helper()
	const token = 0x1234_5678_9abc_def0
	writes(t, owner, wire.RegOwner, token)
	for port, m := range members {
		writes(t, owner, wire.MemberAddr(wire.RegMemberAddress, port), reads(t, m, wire.RegSource))
		mac := reads(t, m, wire.RegSourceMAC)
		require.EqualValues(t, port+1, mac>>48, "the Ethernet port")
		writes(t, owner, wire.MemberAddr(wire.RegMemberMAC, port), mac)
	}
	for addr, value := range map[uint32]uint64{wire.RegJobToken: token, wire.RegJobPorts: 1<<len(members) - 1, wire.RegJobChunk: 64, wire.RegJobWindow: 1, wire.RegJobDeadline: 0} {
		writes(t, owner, addr, value)
	}
	epoch = uint16(reads(t, owner, wire.RegJobState)) + 1
	writes(t, owner, wire.RegJobCommit, uint64(epoch)<<32)
	return epoch
}

// TestBadFrames: a host sends every bad frame, and reads what the card has counted.
func TestBadFrames(t *testing.T) {
	for _, name := range cards {
		h := attach(t, wired(t, name, 1)[0], 1)
		want := map[string]uint64{}
		for _, f := range frames.Faults {
			d := frames.NewDatagram(frames.Question())
			f.Make(d)
			require.NoError(t, h.Send(d.Bytes()))
			if f.Reason != "" {
				want[f.Reason]++
			}
		}
		s := dial(t, h)
		for _, c := range wire.NetworkCounters {
			assert.Equal(t, want[c.Name], reads(t, s, counter(c.Name)), "%s: %s", name, c.Name)
		}
		assert.Empty(t, h.Others)
		reduces(t, dial(t, h), 3)
	}
}

// TestPing: the card answers echo requests.
func TestPing(t *testing.T) {
	h := attach(t, wired(t, cards[0], 2)[1], 1)
	for n := range 5 {
		require.NoError(t, h.Send(frames.EchoRequest(0, bytes.Repeat([]byte{byte(n)}, 300*n))))
		reply := <-h.Others
		require.Len(t, reply, max(64, 42+300*n+4))
		require.Zero(t, reply[34], "an echo reply")
	}
}
