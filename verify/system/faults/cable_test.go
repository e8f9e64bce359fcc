package faults_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tributary/driver/frame"
	"tributary/driver/model"
	"tributary/driver/virtual/ethernet"
	"tributary/driver/wire"
	"tributary/verify/system/faults"
	"tributary/verify/system/frames"
)

// sent are datagrams of a host to the card: data, asks and register reads.
func sent() (all [][]byte) {
	for vid := range uint32(200) {
		for _, h := range []frame.Header{
			{Kind: wire.KindData, Format: wire.FP32, VID: vid, Length: 8},
			{Kind: wire.KindAsk, VID: vid},
			{Kind: wire.KindRegRead, VID: wire.RegPorts, Length: uint16(vid)},
		} {
			var payload []byte
			if h.Kind == wire.KindData {
				payload = bytes.Repeat([]byte{byte(vid), byte(vid >> 8), 7, 0x3f}, 8)
			}
			all = append(all, frames.NewDatagram(frame.AppendDatagram(nil, &h, payload)).Bytes())
		}
	}
	return all
}

// read returns the frames that have come to an end.
func read(from func([]byte) (int, error)) (all [][]byte) {
	buf := make([]byte, 1<<16)
	for {
		n, err := from(buf)
		if err != nil {
			return all
		}
		all = append(all, bytes.Clone(buf[:n]))
	}
}

// through sends frames through a cable that does one kind of fault to each, and returns what comes to the
// card.
func through(t *testing.T, kind faults.FrameKind, all [][]byte) (c *faults.Cable, came [][]byte) {
	t.Helper()
	rates := faults.FrameRates{Seed: 3}
	rates.Chances[kind] = 1
	c = faults.NewCable(rates, new(faults.FrameCounts))
	plug := c.Plug(frames.CheckSound)
	c.On.Store(true)
	for _, f := range all {
		n, err := c.Write(f)
		require.NoError(t, err)
		require.Equal(t, len(f), n)
	}
	c.Quiet()
	require.NoError(t, plug.Close())
	return c, read(plug.ReadFrame)
}

// TestTheCardCountsEachKind: the model counts each faulty frame in the counter that the cable expects, takes
// nothing of a stranger, and drops or takes the others.
func TestTheCardCountsEachKind(t *testing.T) {
	all := sent()
	for kind, name := range faults.FrameKinds {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, came := through(t, faults.FrameKind(kind), all)
				endpoint, err := model.NewEndpoint(model.Config{Lanes: 1, Ports: 4, Chunk: 8, Window: 4, Jobs: 1, Shell: wire.ShellUDP, Link: 8, Ethernet: 1}, frames.CardAddress)
				require.NoError(t, err)
				card, err := ethernet.New(endpoint, 1)
				require.NoError(t, err)
				var replies [][]byte
				for _, f := range came {
					card.Receive(0, f)
					for {
						f, _, ok := card.Send(nil)
						if !ok {
							break
						}
						replies = append(replies, f)
					}
				}
				want := map[string]int64{}
				for name, n := range c.Expected() {
					want[name] = n
				}
				got := counted(t, endpoint)
				delete(got, "stranger") // the card has no job: it knows no member
				assert.Equal(t, want, got)
				if n := c.Happened.Faults[frame.ToCard][kind].Load(); n < int64(len(all)/3) {
					t.Errorf("%d faults in %d frames", n, len(all))
				}
				if s := c.Strangers(); s.Writes > 0 {
					busy(t, replies, s.Writes)
				}
			})
		})
	}
}

// counted returns the card's counters of frames that are not 0.
func counted(t *testing.T, endpoint *model.Endpoint) map[string]int64 {
	t.Helper()
	all := map[string]int64{}
	for i, c := range wire.NetworkCounters {
		endpoint.Receive(frames.Access(wire.KindRegRead, wire.CounterAddr(len(wire.Counters)+i), 0), wire.Address{}, wire.ECT0)
		reply, _, _, ok := endpoint.Send(nil)
		require.True(t, ok)
		if n := binary.LittleEndian.Uint64(reply[wire.BaseHeaderBytes:]); n > 0 {
			all[c.Name] = int64(n)
		}
	}
	return all
}

// busy checks that a cable counts the replies to a stranger, and that all refuse its writes.
func busy(t *testing.T, replies [][]byte, writes int64) {
	t.Helper()
	c := faults.NewCable(faults.FrameRates{}, new(faults.FrameCounts))
	plug := c.Plug(frames.CheckSound)
	for _, f := range replies {
		require.NoError(t, plug.WriteFrame(f))
	}
	s := c.Strangers()
	assert.Equal(t, writes, s.Refused)
	assert.Zero(t, s.Obeyed)
}

// TestFramesOfOthers: frames that are no datagrams of the card arrive as they were, or with a wrong FCS.
func TestFramesOfOthers(t *testing.T) {
	other := frames.Strange(frames.HostMAC, frames.CardMAC, 1, 2, 3)
	arp := frames.ARPRequest(frames.ToAll, frames.CardIP)
	for kind, name := range faults.FrameKinds {
		synctest.Test(t, func(t *testing.T) {
			_, came := through(t, faults.FrameKind(kind), [][]byte{other, arp, other, arp})
			for _, f := range came {
				same := bytes.Equal(f, other) || bytes.Equal(f, arp)
				_, whole := ethernet.CutFCS(f)
				assert.Equal(t, same, whole, name)
			}
		})
	}
}

// TestFaultyFramesToTheHost: a host behind the cable drops a frame or takes it, and takes no wrong datagram
// but those that only CRC-32C shows.
func TestFaultyFramesToTheHost(t *testing.T) {
	h := frame.Header{Kind: wire.KindReply, VID: wire.RegPorts}
	good := frame.AppendDatagram(nil, &h, nil)
	for kind, name := range faults.FrameKinds {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rates := faults.FrameRates{Seed: 5}
				rates.Chances[kind] = 1
				c := faults.NewCable(rates, new(faults.FrameCounts))
				c.On.Store(true)
				plug := c.Plug(frames.CheckSound)
				for range 300 {
					require.NoError(t, plug.WriteFrame(frames.NewDatagram(good).Bytes()))
				}
				c.Quiet()
				require.NoError(t, c.Close())
				sound := 0
				check := frame.NewDatagramChecker(frame.FromCard)
				for _, f := range read(c.Read) {
					if frames.CheckSound(f) != nil || !bytes.Equal(f[:6], frames.CardMAC) || binary.BigEndian.Uint16(f[12:]) != 0x0800 {
						continue
					}
					sound++
					var d frame.Frame
					size := binary.BigEndian.Uint16(f[16:])
					if took := check.Check(f[42:14+size], &d); took == (faults.FrameKind(kind) == faults.Swapped) && f[14] == 0x45 {
						t.Errorf("the driver takes %x: %v", f, took)
					}
				}
				t.Log(fmt.Sprint(sound), "of 300 frames are sound")
				if dropped := sound == 0; dropped != droppedByHosts[faults.FrameKind(kind)] {
					t.Errorf("%d of 300 frames are sound", sound)
				}
			})
		})
	}
}

// droppedByHosts are the kinds that no network card or kernel lets through.
var droppedByHosts = map[faults.FrameKind]bool{
	faults.Lost: true, faults.Damaged: true, faults.CutOff: true, faults.Shortened: true, faults.Tagged: true,
	faults.Fragment: true, faults.OtherMAC: true, faults.NoChecksum: true,
}

// TestPulledOut: nothing passes while a cable is out, and an earlier card's delayed frames reach no later one.
func TestPulledOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := sent()[:8]
		c := faults.NewCable(faults.FrameRates{}, new(faults.FrameCounts))
		n := 0
		c.Watch = func(*frame.Header) bool { n++; return n == 3 }
		plug := c.Plug(frames.CheckSound)
		for i, f := range all {
			if i == 6 {
				time.Sleep(time.Second)
			}
			_, err := c.Write(f)
			require.NoError(t, err)
		}
		require.NoError(t, plug.Close())
		assert.Equal(t, [][]byte{all[0], all[1], all[6], all[7]}, read(plug.ReadFrame))

		rates := faults.FrameRates{}
		rates.Chances[faults.Delayed] = 1
		c = faults.NewCable(rates, new(faults.FrameCounts))
		c.On.Store(true)
		for range 2 {
			plug = c.Plug(frames.CheckSound)
			_, err := c.Write(all[0])
			require.NoError(t, err)
		}
		c.Quiet()
		require.NoError(t, plug.Close())
		assert.Equal(t, all[:1], read(plug.ReadFrame))
	})
}

// TestTrunk: between cards, strangers send copies of results and statuses too, and of nothing else. A cable to
// a host has none of them.
func TestTrunk(t *testing.T) {
	rates := faults.FrameRates{}
	rates.Chances[faults.OthersData] = 1
	for name, c := range map[string]*faults.Cable{
		"trunk": faults.NewTrunk(rates, new(faults.FrameCounts)), "cable": faults.NewCable(rates, new(faults.FrameCounts)),
	} {
		c.On.Store(true)
		card, beyond := c.Plug(frames.CheckSound), c.PlugHost(frames.CheckSound)
		for _, h := range []frame.Header{
			{Kind: wire.KindResult, Format: wire.FP32, Length: 2, Mask: 3}, {Kind: wire.KindReplay, Format: wire.FP32, Length: 2, Mask: 3},
			{Kind: wire.KindStatus, Code: wire.CodeDone}, {Kind: wire.KindReply, VID: wire.RegPorts},
		} {
			good := frames.NewDatagram(frame.AppendDatagram(nil, &h, make([]byte, 4*h.Length))).Bytes()
			require.NoError(t, card.WriteFrame(good))
			require.NoError(t, beyond.Close())
			came := read(beyond.ReadFrame)
			beyond = c.PlugHost(frames.CheckSound)
			assert.Equal(t, good, came[len(came)-1])
			if name == "cable" || h.Kind == wire.KindReply {
				assert.Len(t, came, 1, "%s, %v", name, h.Kind)
				continue
			}
			require.Len(t, came, 2, h.Kind)
			copied := came[0]
			require.NoError(t, frames.CheckSound(copied))
			assert.NotEqual(t, good[26:30], copied[26:30], "the sender")
			assert.Equal(t, good[30:34], copied[30:34], "the receiver")
			assert.Equal(t, good[36:38], copied[36:38], "its UDP port")
			var f frame.Frame
			assert.True(t, frame.NewDatagramChecker(frame.FromCard).Check(copied[42:14+int(binary.BigEndian.Uint16(copied[16:]))], &f))
			assert.Equal(t, h.Kind, f.Kind)
		}
		_, err := c.Write(sent()[0])
		require.NoError(t, err)
		require.NoError(t, card.Close())
		assert.Len(t, read(card.ReadFrame), 2, "data and a stranger's copy of it")
	}
}

// TestPulledOutOfATrunk: frames from beyond one end that are late reach no later card at the other.
func TestPulledOutOfATrunk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rates := faults.FrameRates{}
		rates.Chances[faults.Delayed] = 1
		c := faults.NewTrunk(rates, new(faults.FrameCounts))
		c.On.Store(true)
		f := sent()[0]
		card := c.Plug(frames.CheckSound)
		var beyond *faults.Plug
		for range 2 {
			beyond = c.PlugHost(frames.CheckSound)
			require.NoError(t, card.WriteFrame(f))
			require.NoError(t, beyond.WriteFrame(f))
		}
		c.Quiet()
		require.NoError(t, card.Close())
		require.NoError(t, beyond.Close())
		assert.Equal(t, [][]byte{f}, read(beyond.ReadFrame))
		assert.Equal(t, [][]byte{f, f}, read(card.ReadFrame))
	})
}

// TestUnsoundFrameOfTheCard is noted.
func TestUnsoundFrameOfTheCard(t *testing.T) {
	c := faults.NewCable(faults.FrameRates{}, new(faults.FrameCounts))
	f := sent()[0]
	f[41] ^= 1
	require.NoError(t, c.Plug(frames.CheckSound).WriteFrame(frames.Closed(f[:len(f)-4])))
	require.Len(t, c.Broken(), 1)
	assert.ErrorContains(t, c.Broken()[0], "checksums")
}
