package daemon_test

import (
	"encoding/binary"
	"io"
	"net"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"tributary/driver/daemon"
	"tributary/driver/daemon/protocol"
	"tributary/driver/frame"
	"tributary/driver/wire"
)

// beside runs something bad beside a job of two sessions, which sums before and after it. bad gets the
// address of the daemon and the beginning of the job.
func beside(t *testing.T, bad func(path string, b *protocol.Begin)) {
	path := socket(t)
	_, _, stop := serveOn(t, "unix:"+path, daemon.Options{})
	one, two, b := pair(t, path, &protocol.Parameters{})
	announce(one, two, b, 2)
	sum(t, one, two, b, 0)
	bad(path, b)
	sum(t, one, two, b, 1)
	finishBoth(one, two, b, 2)
	stop()
}

// sendAll sends bytes and the end of the stream, and reads until the other side closes.
func sendAll(t *testing.T, conn net.Conn, raw []byte) {
	_ = conn.SetDeadline(time.Now().Add(patience))
	_, _ = conn.Write(raw) // the daemon may have closed it
	_ = conn.(*net.UnixConn).CloseWrite()
	_, err := io.Copy(io.Discard, conn)
	if timeout, ok := err.(net.Error); ok && timeout.Timeout() {
		t.Error("the daemon does not close the connection")
	}
}

// FuzzOpening sends any first bytes.
func FuzzOpening(f *testing.F) {
	for _, seed := range []string{
		"", "T", "TRIBDAT1", "TRIBDAT10123456789abcdef", "TRIBDAT2", "PRI * HT",
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00",
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\xff\xff\xff\x00\x00\x00\x00\x00\x01rest",
		"GET / HTTP/1.1\r\n\r\n", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		beside(t, func(path string, _ *protocol.Begin) {
			conn, err := net.Dial("unix", path)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			sendAll(t, conn, raw)
		})
	})
}

// FuzzData sends any bytes on the data connection of a session that holds a seat of its own job, and then
// the frames in them as if they were of the other job's epoch.
func FuzzData(f *testing.F) {
	h := frame.Header{Kind: wire.KindData, Format: wire.FP32, Length: 16}
	payload := make([]byte, 64)
	for job := range uint8(2) {
		h.Job = job
		f.Add(frame.Append(nil, &h, payload))
		f.Add(frame.Append(nil, &frame.Header{Kind: wire.KindFinish, Job: job, Rank: 1}, nil))
		f.Add(frame.Append(nil, &frame.Header{Kind: wire.KindAsk, Job: job, Rank: 1}, nil))
	}
	f.Add(frame.Append(nil, &frame.Header{Kind: wire.KindRegWrite, VID: wire.RegReset}, nil))
	f.Add(frame.Append(nil, &frame.Header{Kind: wire.KindRegRead, VID: wire.RegMagic}, nil))
	f.Add([]byte("\x54\x52 half a frame"))
	f.Add(frame.Append(nil, &h, payload)[:40])
	f.Fuzz(func(t *testing.T, raw []byte) {
		beside(t, func(path string, b *protocol.Begin) {
			rogue := attach(t, path, &protocol.Hello{Version: 1, Admin: true})
			rogue.join(rogue.create(&protocol.Parameters{Workers: pointer(uint32(1))}), 0, nil)
			own := rogue.begun()
			rogue.call(&protocol.Call{Nonce: own.Nonce, Elements: 16 << 31, Format: uint32(wire.FP32)})
			sendAll(t, rogue.conn, aimed(raw, b))
		})
	})
}

// aimed returns bytes, followed by the frames in them with the epoch of a job, as if their sender knew
// it.
func aimed(raw []byte, b *protocol.Begin) []byte {
	all := append([]byte(nil), raw...)
	scan := frame.NewScanner(frame.ToCard, 0)
	var f frame.Frame
	for rest := raw; len(rest) > 0; {
		n := scan.Feed(rest)
		rest = rest[n:]
		for scan.Next(&f) {
			h := f.Header
			h.Job, h.Epoch = uint8(b.Number), uint16(b.Epoch)
			all = frame.Append(all, &h, f.Payload)
		}
		if n == 0 {
			break
		}
	}
	return all
}

// nonces of the corpus, which stand for those of the jobs.
const (
	ownNonce   = 1
	otherNonce = 2
)

// FuzzControl sends any messages, each after two bytes of its length, in a session that holds a seat of
// a job of its own.
func FuzzControl(f *testing.F) {
	messages := []*protocol.ToDaemon{
		{Message: &protocol.ToDaemon_Hello{Hello: &protocol.Hello{Version: 1}}},
		{Message: &protocol.ToDaemon_Create{Create: &protocol.Create{Parameters: &protocol.Parameters{Workers: pointer(uint32(1))}, Queue: true}}},
		{Message: &protocol.ToDaemon_Create{Create: &protocol.Create{Parameters: &protocol.Parameters{
			Workers: pointer(^uint32(0)), Chunk: pointer(^uint32(0)), Window: pointer(uint32(3)), CarryOnNs: pointer(^uint64(0)), DeadlineNs: pointer(^uint64(0))}}}},
		{Message: &protocol.ToDaemon_Join{Join: &protocol.Join{Nonce: ownNonce, Rank: pointer(uint32(1))}}},
		{Message: &protocol.ToDaemon_Join{Join: &protocol.Join{Nonce: otherNonce}}},
		{Message: &protocol.ToDaemon_Rejoin{Rejoin: &protocol.Rejoin{Join: &protocol.Join{Nonce: otherNonce, Rank: pointer(uint32(0))}}}},
		{Message: &protocol.ToDaemon_Rejoin{Rejoin: &protocol.Rejoin{}}},
		{Message: &protocol.ToDaemon_Call{Call: &protocol.Call{Nonce: ownNonce, Elements: 16, Format: uint32(wire.FP32)}}},
		{Message: &protocol.ToDaemon_Call{Call: &protocol.Call{Nonce: otherNonce, Elements: ^uint64(0)}}},
		{Message: &protocol.ToDaemon_Call{Call: &protocol.Call{Nonce: ownNonce, Rank: ^uint32(0), Sequence: ^uint64(0)}}},
		{Message: &protocol.ToDaemon_Report{Report: &protocol.Report{Nonce: ownNonce, Low: 1 << 31, Held: []uint32{0, 1 << 30}}}},
		{Message: &protocol.ToDaemon_Report{Report: &protocol.Report{Nonce: otherNonce}}},
		{Message: &protocol.ToDaemon_Kept{Kept: &protocol.Kept{Nonce: ownNonce, Mask: 1, Payload: []byte("x")}}},
		{Message: &protocol.ToDaemon_Held{Held: &protocol.Held{Nonce: ownNonce}}},
		{Message: &protocol.ToDaemon_Connect{Connect: &protocol.Connect{Nonce: ownNonce}}},
		{Message: &protocol.ToDaemon_Failed{Failed: &protocol.Failed{Nonce: ownNonce, Text: "x"}}},
		{Message: &protocol.ToDaemon_Disconnected{Disconnected: &protocol.Disconnected{Nonce: ownNonce, Rank: ^uint32(0)}}},
		{Message: &protocol.ToDaemon_Leave{Leave: &protocol.Leave{Nonce: otherNonce}}},
		{Message: &protocol.ToDaemon_Leave{Leave: &protocol.Leave{Nonce: ownNonce}}},
		{Message: &protocol.ToDaemon_Abort{Abort: &protocol.Abort{Nonce: otherNonce}}},
		{Message: &protocol.ToDaemon_Abort{Abort: &protocol.Abort{Nonce: ownNonce}}},
		{},
	}
	var all []byte
	for _, m := range messages {
		raw, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		raw = append(binary.LittleEndian.AppendUint16(nil, uint16(len(raw))), raw...)
		f.Add(raw)
		all = append(all, raw...)
	}
	f.Add(all)
	f.Fuzz(func(t *testing.T, raw []byte) {
		beside(t, func(path string, b *protocol.Begin) {
			rogue := attach(t, path, &protocol.Hello{Version: 1})
			nonce := rogue.create(&protocol.Parameters{Workers: pointer(uint32(2))})
			rogue.join(nonce, 0, nil)
			for _, m := range decode(raw) {
				rename(m.ProtoReflect(), map[uint64]uint64{ownNonce: nonce, otherNonce: b.Nonce})
				if rogue.stream.Send(m) != nil {
					break // the session has ended
				}
			}
			_ = rogue.stream.CloseSend()
			for {
				if _, err := rogue.stream.Recv(); err != nil {
					break
				}
			}
		})
	})
}

// decode returns the messages in fuzzed bytes.
func decode(raw []byte) (messages []*protocol.ToDaemon) {
	for len(raw) >= 2 {
		n := min(int(binary.LittleEndian.Uint16(raw)), len(raw)-2)
		m := &protocol.ToDaemon{}
		if proto.Unmarshal(raw[2:2+n], m) == nil {
			messages = append(messages, m)
		}
		raw = raw[2+n:]
	}
	return messages
}

// rename replaces nonces in a message.
func rename(m protoreflect.Message, nonces map[uint64]uint64) {
	m.Range(func(field protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case field.Message() != nil && !field.IsList():
			rename(m.Mutable(field).Message(), nonces)
		case field.Name() == "nonce" && nonces[v.Uint()] != 0:
			m.Set(field, protoreflect.ValueOfUint64(nonces[v.Uint()]))
		}
		return true
	})
}
