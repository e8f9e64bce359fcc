package rc_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tributary/driver/model"
	"tributary/driver/virtual/cable"
	"tributary/driver/virtual/clock"
	"tributary/driver/virtual/ethernet"
	"tributary/driver/virtual/frameport"
	"tributary/driver/virtual/rc"
	"tributary/driver/virtual/ring"
	"tributary/driver/wire"
	"tributary/verify/system/frames"
)

// closed appends the FCS to a frame.
func closed(frame []byte) []byte { return ethernet.AppendFCS(frame) }

// TestScapy: a second reader finds the frames of two hosts right, and reads the same in them. All kinds of
// messages are among them, ACKs, and NAKs of lost packets.
func TestScapy(t *testing.T) {
	var all [][]byte
	for _, kind := range kinds {
		c := newCouple(t, 2, cable.Faults{Loss: 0.02}, func(c *rc.Connection) { c.ECN = wire.ECT1 })
		c.cable.Drop = func(_ cable.Port, frame []byte) bool {
			all = append(all, frame)
			return false
		}
		sendAll(c, kind)
	}
	var input strings.Builder
	for _, frame := range all {
		input.WriteString(hex.EncodeToString(frame[:len(frame)-ethernet.FCSBytes]) + "\n")
	}
	judge := exec.Command("python3", "../../wire/testdata/roce.py")
	judge.Stdin = strings.NewReader(input.String())
	out, err := judge.Output()
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	require.Len(t, lines, len(all))
	seen := map[wire.Opcode]int{}
	refusals := 0
	for i, line := range lines {
		var fields struct {
			Opcode                       wire.Opcode
			Padcount                     uint8
			Solicited, Version, Ackreq   int
			Pkey                         uint16
			Dqpn, Psn, Msn, Source, Ecn  uint32
			Fecn, Becn, Migreq, Syndrome int
			Rest                         string
			ICRC, Rebuilt                bool
		}
		require.NoError(t, json.Unmarshal([]byte(line), &fields))
		p, err := rc.Parse(all[i])
		require.NoError(t, err)
		assert.True(t, fields.Rebuilt && fields.ICRC, line)
		assert.Equal(t, wire.BTH{
			Opcode: fields.Opcode, MigReq: fields.Migreq == 1, Pad: fields.Padcount, PKey: fields.Pkey, DestQP: fields.Dqpn,
			AckReq: fields.Ackreq == 1, PSN: fields.Psn,
		}, p.BTH)
		assert.Zero(t, fields.Solicited+fields.Version+fields.Fecn+fields.Becn)
		assert.EqualValues(t, wire.ECT1, fields.Ecn)
		seen[p.BTH.Opcode]++
		if p.BTH.Opcode == wire.OpAcknowledge {
			assert.Equal(t, p.AETH, wire.AETH{Syndrome: wire.Syndrome(fields.Syndrome), MSN: fields.Msn})
			if p.AETH.Syndrome == wire.SyndromeSequence {
				refusals++
			}
			continue
		}
		want := hex.EncodeToString(p.Payload)
		assert.Equal(t, want, fields.Rest[len(fields.Rest)-len(want)-2*int(p.BTH.Pad):len(fields.Rest)-2*int(p.BTH.Pad)])
	}
	assert.Len(t, seen, 13) // 6 of each, and ACK
	assert.Greater(t, refusals, 2)
}

// TestARP: a host answers requests for its own address alone.
func TestARP(t *testing.T) {
	h := rc.New(rc.Address{MAC: [6]byte(frames.CardMAC), IP: address(1).IP})
	h.Receive(0, frames.ARPRequest(frames.ToAll, []byte{10, 0, 0, 1}))
	reply, _, ok := h.Send(nil)
	require.True(t, ok)
	want := append([]byte{
		0x06, 0x11, 0x22, 0x33, 0x44, 0x55, 0x02, 0x54, 0x52, 0x42, 0, 1, 0x08, 0x06,
		0, 1, 0x08, 0, 6, 4, 0, 2, 0x02, 0x54, 0x52, 0x42, 0, 1, 10, 0, 0, 1, 0x06, 0x11, 0x22, 0x33, 0x44, 0x55, 192, 168, 84, 1,
	}, make([]byte, 18)...)
	assert.Equal(t, closed(want), reply)
	h.Receive(0, frames.ARPRequest(frames.ToAll, []byte{10, 0, 0, 2}))
	h.Receive(0, reply) // no request
	_, _, ok = h.Send(nil)
	assert.False(t, ok)
	assert.Equal(t, rc.Counters{Foreign: 2}, h.Counters())
}

// inPath returns a card of shell udp, which is a switch for RoCEv2.
func inPath(t *testing.T, ports int) *ethernet.Card {
	t.Helper()
	endpoint, err := model.NewEndpoint(model.Config{Lanes: 1, Ports: 4, Chunk: 4, Window: 4, Shell: wire.ShellUDP, Link: 64, Ethernet: ports}, frames.CardAddress)
	require.NoError(t, err)
	card, err := ethernet.New(endpoint, ports)
	require.NoError(t, err)
	return card
}

// TestThroughACard: a card of shell udp passes RoCEv2 unharmed.
func TestThroughACard(t *testing.T) {
	job := small(3, true)
	r, err := ring.New(inPath(t, 3), ring.Config{Job: job, Seed: 4, Faults: cable.Faults{Loss: 0.01}})
	require.NoError(t, err)
	require.NoError(t, r.Connect())
	w := &around{t, r, job}
	w.start(0, 1, 2)
	w.finish()
}

// TestInRealTime: workers at a card's sockets, each in its own goroutines.
func TestInRealTime(t *testing.T) {
	t.Chdir(t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	job := small(2, false)
	job.Timeout, job.Deadline = 20, 0 // 30 seconds of retries
	barrier := rc.NewBarrier(2)
	var (
		workers []*rc.Worker
		offers  []rc.Offer
		sockets []frameport.Port
		ends    []chan error
	)
	serve := func(device ethernet.Device, ports ...frameport.Port) {
		ended := make(chan error, 1)
		ends = append(ends, ended)
		go func() { ended <- frameport.Serve(ctx, device, clock.Start(device), ports) }()
	}
	for rank := range 2 {
		port, err := frameport.Open("unix:port" + string(rune('0'+rank)))
		require.NoError(t, err)
		sockets = append(sockets, port)
		w, err := rc.NewWorker(rc.New(address(rank)), rank, job, barrier, uint32(20+rank), 0xfffff0)
		require.NoError(t, err)
		workers, offers = append(workers, w), append(offers, w.Offer())
	}
	serve(inPath(t, 2), sockets...)
	arrays := [][]byte{random(1, job.Bytes), random(2, job.Bytes)}
	for rank, w := range workers {
		require.NoError(t, w.Connect(offers[1-rank], offers[1-rank]))
		require.NoError(t, w.Start(arrays[rank]))
		port, err := frameport.Attach("host"+string(rune('0'+rank)), "port"+string(rune('0'+rank)))
		require.NoError(t, err)
		serve(w, port)
	}
	<-barrier.Over()
	cancel()
	for _, ended := range ends {
		assert.NoError(t, <-ended)
	}
	for rank, w := range workers {
		got, _, err := w.Outcome()
		require.NoError(t, err)
		assert.True(t, bytes.Equal(arrays[1-rank], got))
	}
}
