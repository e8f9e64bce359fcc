package driver

import (
	"bytes"
	"testing"

	"tributary/driver/frame"
	"tributary/driver/wire"
)

// TestFramesBecomeDatagrams: on a link of packets, each frame of a relay becomes a datagram with the
// same header and payload. A frame with a damaged payload does not: a datagram's CRC would hide that.
func TestFramesBecomeDatagrams(t *testing.T) {
	data := frame.Header{Kind: wire.KindData, Format: wire.FP32, Rank: 1, VID: 7, Length: 2}
	ask := frame.Header{Kind: wire.KindAsk, Rank: 2, VID: 7}
	good := frame.Append(frame.Append(nil, &data, []byte("payload!")), &ask, nil)
	bad := frame.Append(nil, &data, []byte("damaged!"))
	bad[len(bad)-5] ^= 1
	want := frame.AppendDatagram(nil, &data, []byte("payload!"))
	first := len(want)
	want = frame.AppendDatagram(want, &ask, nil)

	out := newBatch(true)
	for range 2 { // also when it is used again, after half a frame
		out.clear()
		out.addFrames(bad)
		out.addFrames(good)
		if !bytes.Equal(out.buf, want) || len(out.ends) != 2 || out.ends[0] != first || out.ends[1] != len(want) {
			t.Errorf("% x with ends at %d, want % x", out.buf, out.ends, want)
		}
		out.addFrames(good[:10])
	}
}

// TestDatagramsBecomeFrames: a relay's remote gets the packet of a datagram as a frame.
func TestDatagramsBecomeFrames(t *testing.T) {
	h := frame.Header{Kind: wire.KindResult, Format: wire.FP32, VID: 7, Length: 2, Mask: 3, Receivers: 1}
	var f frame.Frame
	if !frame.NewDatagramChecker(frame.FromCard).Check(frame.AppendDatagram(nil, &h, []byte("payload!")), &f) {
		t.Fatal("it fails the checks")
	}
	new(Relay).reframe(&f)
	if want := frame.Append(nil, &h, []byte("payload!")); !bytes.Equal(f.Raw, want) || string(f.Payload) != "payload!" {
		t.Errorf("% x with the payload %q, want % x", f.Raw, f.Payload, want)
	}
}
