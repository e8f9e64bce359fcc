package capture_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tributary/driver/cpu"
	"tributary/driver/model"
	"tributary/driver/virtual/capture"
	"tributary/driver/virtual/ethernet"
	"tributary/driver/wire"
	"tributary/verify/system/frames"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// endpoints are the cards in software.
var endpoints = map[string]func(ports int) (ethernet.Endpoint, error){
	"model": func(ports int) (ethernet.Endpoint, error) {
		return model.NewEndpoint(model.Config{
			Lanes: 4, Ports: 4, Chunk: 64, Window: 4, Shell: wire.ShellUDP, Link: 64, Ethernet: ports, Parent: ports == withParent,
		}, frames.CardAddress)
	},
	"cpu": func(ports int) (ethernet.Endpoint, error) {
		return cpu.NewEndpoint(cpu.Config{
			Lanes: 4, Ports: 4, Chunk: 64, Window: 4, Shell: wire.ShellUDP, Link: 64, Ethernet: ports, Parent: ports == withParent,
		}, frames.CardAddress)
	},
}

// replay passes a file through a card.
func replay(t *testing.T, name string, file []byte) (out []byte, counts []capture.Counts, counters map[string]uint64) {
	t.Helper()
	c, err := capture.Open(bytes.NewReader(file))
	require.NoError(t, err)
	endpoint, err := endpoints[name](c.Ports())
	require.NoError(t, err)
	card, err := ethernet.New(endpoint, c.Ports())
	require.NoError(t, err)
	var b bytes.Buffer
	counts, err = c.Replay(card, &b)
	require.NoError(t, err)
	return b.Bytes(), counts, capture.Counters(endpoint)
}

// written is a frame of an output.
type written struct {
	captured
	out bool
}

// open returns the frames of an output, all of which have an FCS.
func open(t *testing.T, file []byte) (all []written) {
	t.Helper()
	r, err := pcapgo.NewNgReader(bytes.NewReader(file), pcapgo.NgReaderOptions{WantMixedLinkType: true})
	require.NoError(t, err)
	for {
		data, ci, options, err := r.ReadPacketDataWithOptions()
		if errors.Is(err, io.EOF) {
			return all
		}
		require.NoError(t, err)
		require.Equal(t, pcapgo.NewNgEpbFlagFCSLength(4), options.Flags.FCSLen)
		out := options.Flags.Direction == pcapgo.NgEpbFlagDirectionOutbound
		require.True(t, out || options.Flags.Direction == pcapgo.NgEpbFlagDirectionInbound)
		all = append(all, written{captured{ci.Timestamp.UTC(), ci.InterfaceIndex, data}, out})
	}
}

// TestGoldens: gopacket makes the inputs, and the model's outputs are those that were reviewed.
func TestGoldens(t *testing.T) {
	for _, c := range inputs {
		in := newInput(c.ports)
		c.make(in)
		file := in.file(t)
		golden(t, c.name+".pcapng", file)
		out, counts, _ := replay(t, "model", file)
		golden(t, c.name+".out.pcapng", out)

		// The input is in the output, in its order.
		var got []captured
		for _, f := range open(t, out) {
			if !f.out {
				got = append(got, f.captured)
				counts[f.port].In--
			} else {
				counts[f.port].Out--
			}
		}
		require.Equal(t, in.frames, got, c.name)
		require.Equal(t, make([]capture.Counts, c.ports), counts)
	}
}

// TestBothCards: the card in software writes the same files, except where the cards' own clocks show.
func TestBothCards(t *testing.T) {
	for _, c := range inputs {
		file, err := os.ReadFile("testdata/" + c.name + ".out.pcapng")
		require.NoError(t, err)
		in, err := os.ReadFile("testdata/" + c.name + ".pcapng")
		require.NoError(t, err)
		out, _, _ := replay(t, "cpu", in)
		require.Equal(t, open(t, file), open(t, out), c.name)
	}
}

// TestReasons: the counters are those of the faults. Of the frames for others, that to all stations passes;
// one is for the port where it came, and two have the card's own MAC address.
func TestReasons(t *testing.T) {
	file, err := os.ReadFile("testdata/faults2.pcapng")
	require.NoError(t, err)
	want := map[string]uint64{"frames": uint64(len(frames.Faults)), "passed": 1}
	for _, f := range frames.Faults {
		want[f.Reason]++
	}
	delete(want, "")
	for name := range endpoints {
		_, _, counters := replay(t, name, file)
		assert.Equal(t, want, counters, name)
	}
}

// TestScapy: a second reader finds every frame that a card made right. It computes checksums, lengths
// and FCS anew.
func TestScapy(t *testing.T) {
	var all strings.Builder
	want := map[string]int{}
	for _, c := range inputs {
		file, err := os.ReadFile("testdata/" + c.name + ".out.pcapng")
		require.NoError(t, err)
		came := map[string]bool{}
		for _, f := range open(t, file) {
			if !f.out {
				came[string(f.frame)] = true
			} else if !came[string(f.frame)] {
				fmt.Fprintln(&all, hex.EncodeToString(f.frame))
				want[kindOf(f.frame)]++
			}
		}
	}
	judge := exec.Command("python3", "testdata/judge.py")
	judge.Stdin = strings.NewReader(all.String())
	out, err := judge.CombinedOutput()
	require.NoError(t, err, "%s", out)
	assert.Equal(t, fmt.Sprintf("%d ARP, %d ICMP, %d UDP\n", want["ARP"], want["ICMP"], want["UDP"]), string(out))
	assert.Equal(t, 2, want["ARP"])
	assert.Equal(t, 7, want["ICMP"])
	assert.Greater(t, want["UDP"], 70)
}

// kindOf returns what a frame carries.
func kindOf(frame []byte) string {
	switch {
	case frame[13] == 0x06:
		return "ARP"
	case frame[23] == 1:
		return "ICMP"
	}
	return "UDP"
}

// TestTimeStamps: an outbound frame has the time of the inbound frame before it, also if time has caused
// it. Here a partial sum leaves for two members because time has passed, and then a replay
// for the one who was late.
func TestTimeStamps(t *testing.T) {
	out, err := os.ReadFile("testdata/deadline.out.pcapng")
	require.NoError(t, err)
	type event struct {
		out  bool
		kind wire.Kind
		at   time.Duration
	}
	var got []event
	for _, f := range open(t, out) {
		got = append(got, event{f.out, wire.Kind(f.frame[42] >> 4), f.at.Sub(newInput(1).at)})
	}
	const last, next = 120 * time.Microsecond, 420 * time.Microsecond
	assert.Equal(t, []event{
		{false, wire.KindRegWrite, 110 * time.Microsecond}, {true, wire.KindReply, 110 * time.Microsecond}, {false, wire.KindData, last},
		{true, wire.KindResult, last}, {true, wire.KindResult, last}, {false, wire.KindData, next}, {true, wire.KindReplay, next},
	}, got[len(got)-7:])
}

// TestLease: the owner has the card until 30,000 cycles of its clock have passed.
func TestLease(t *testing.T) {
	out, err := os.ReadFile("testdata/lease.out.pcapng")
	require.NoError(t, err)
	var values []uint64
	for _, f := range open(t, out) {
		if f.out {
			values = append(values, binary.LittleEndian.Uint64(f.frame[42+14:]))
		}
	}
	assert.Equal(t, []uint64{7, 30_000, 7, 0}, values)
}

// TestWithoutFCS: a pcap has no FCS, nor has its output, and short frames are padded for the card.
func TestWithoutFCS(t *testing.T) {
	var b bytes.Buffer
	w := pcapgo.NewWriter(&b)
	require.NoError(t, w.WriteFileHeader(1<<16, layers.LinkTypeEthernet))
	request := frames.ARPRequest(frames.ToAll, frames.CardIP)[:42]
	ci := gopacket.CaptureInfo{Timestamp: time.Unix(7, 0), CaptureLength: 42, Length: 42}
	require.NoError(t, w.WritePacket(ci, request))
	out, counts, _ := replay(t, "model", b.Bytes())
	assert.Equal(t, []capture.Counts{{In: 1, Out: 1}}, counts)

	r, err := pcapgo.NewNgReader(bytes.NewReader(out), pcapgo.NgReaderOptions{WantMixedLinkType: true})
	require.NoError(t, err)
	in, _, options, err := r.ReadPacketDataWithOptions()
	require.NoError(t, err)
	assert.Equal(t, request, in)
	assert.Equal(t, &pcapgo.NgEpbFlags{Direction: pcapgo.NgEpbFlagDirectionInbound}, options.Flags)
	reply, replied, options, err := r.ReadPacketDataWithOptions()
	require.NoError(t, err)
	assert.Len(t, reply, 60)
	assert.Equal(t, time.Unix(7, 0).UTC(), replied.Timestamp.UTC())
	assert.Equal(t, &pcapgo.NgEpbFlags{Direction: pcapgo.NgEpbFlagDirectionOutbound}, options.Flags)
}

// TestTheClock: before each frame the clock advances by the time of the capture, and by 8,192 cycles at
// least.
func TestTheClock(t *testing.T) {
	in := newInput(1)
	in.add(0, frames.Strange(hostMAC(1), frames.ToAll))
	in.add(0, frames.Strange(hostMAC(1), frames.ToAll))
	in.at = in.at.Add(120 * time.Microsecond)
	in.add(0, frames.Strange(hostMAC(1), frames.ToAll))
	in.at = in.at.Add(-time.Second) // a capture of several devices may be so
	in.add(0, frames.Strange(hostMAC(1), frames.ToAll))
	c, err := capture.Open(bytes.NewReader(in.file(t)))
	require.NoError(t, err)
	device := &watch{}
	_, err = c.Replay(device, io.Discard)
	require.NoError(t, err)
	assert.Equal(t, []uint64{8192, 8192, 13000, 8192}, device.advanced)

	c, err = capture.Open(bytes.NewReader(in.file(t)))
	require.NoError(t, err)
	_, err = c.Replay(&watch{err: errors.New("it broke")}, io.Discard)
	assert.EqualError(t, err, "frame 1: it broke")
}

// watch is a device that notes how its clock advances.
type watch struct {
	advanced []uint64
	err      error
}

func (w *watch) Cycles() (sum uint64) {
	for _, n := range w.advanced {
		sum += n
	}
	return sum
}
func (w *watch) Advance(cycles uint64)               { w.advanced = append(w.advanced, cycles) }
func (w *watch) Receive(int, []byte)                 {}
func (w *watch) Send(dst []byte) ([]byte, int, bool) { return dst, 0, false }
func (w *watch) Err() error                          { return w.err }
