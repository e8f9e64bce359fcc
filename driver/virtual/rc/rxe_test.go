package rc_test

import (
	"os"
	"testing"

	"github.com/gopacket/gopacket/pcapgo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tributary/driver/virtual/ethernet"
	"tributary/driver/virtual/rc"
	"tributary/driver/wire"
)

// testdata/rxe.pcap has what an endpoint of Linux 6.1's rdma_rxe received and sent: ibv_rc_pingpong with
// messages of 1,500 bytes, MTU 256, and 6 % of all packets lost on the way to and from it. Packets that
// were lost on the way to it are not in the file.
const (
	rxeMTU     = 256
	rxeMessage = 1500
	rxePackets = 6 // of a message
	rxeFrames  = 257
)

// rxeCapture returns the packets, and the endpoint's and its peer's addresses.
func rxeCapture(t *testing.T) (packets []rc.Packet, own, peer rc.Address) {
	t.Helper()
	file, err := os.Open("testdata/rxe.pcap")
	require.NoError(t, err)
	defer file.Close()
	reader, err := pcapgo.NewReader(file)
	require.NoError(t, err)
	for range rxeFrames {
		body, _, err := reader.ReadPacketData()
		require.NoError(t, err)
		p, err := rc.Parse(ethernet.AppendFCS(body))
		require.NoError(t, err)
		packets = append(packets, p)
	}
	return packets, packets[0].To, packets[0].From
}

// ofRXE returns a host in place of the endpoint, with the same connection.
func ofRXE(t *testing.T, packets []rc.Packet, own, peer rc.Address) (*rc.Host, *rc.Pair) {
	t.Helper()
	first := packets[0].BTH
	h := rc.New(own)
	pair := h.CreatePair(first.DestQP)
	require.NoError(t, pair.Connect(rc.Connection{
		Peer: peer, PeerQPN: first.DestQP, SourcePort: packets[0].SourcePort, MTU: rxeMTU, SendPSN: first.PSN, ReceivePSN: first.PSN,
	}))
	return h, pair
}

// TestAnswersOfRXE: a responder answers what rdma_rxe received as rdma_rxe did: the same ACKs and NAKs.
func TestAnswersOfRXE(t *testing.T) {
	packets, own, peer := rxeCapture(t)
	h, pair := ofRXE(t, packets, own, peer)
	for range rxeFrames {
		require.NoError(t, pair.PostReceive(0, make([]byte, rxeMessage)))
	}
	type answer struct {
		psn  uint32
		aeth wire.AETH
	}
	var got, want []answer
	for _, p := range packets {
		isAnswer := p.BTH.Opcode == wire.OpAcknowledge
		if p.From.IP == own.IP && isAnswer {
			want = append(want, answer{p.BTH.PSN, p.AETH})
		}
		if p.From.IP == peer.IP && !isAnswer {
			h.Receive(0, p.Append(nil))
			for _, a := range leaving(t, h) {
				got = append(got, answer{a.BTH.PSN, a.AETH})
			}
		}
	}
	assert.Equal(t, want, got)
	assert.Equal(t, rc.Stats{OutOfOrder: 23, NAKsSent: 7, Duplicates: 10}, pair.Stats())
}

// TestRequestsOfRXE: a requester makes the same packets of rdma_rxe's messages.
func TestRequestsOfRXE(t *testing.T) {
	packets, own, peer := rxeCapture(t)
	h, pair := ofRXE(t, packets, own, peer)
	sent := map[uint32]rc.Packet{}
	for _, p := range packets {
		if p.From.IP == own.IP && p.BTH.Opcode != wire.OpAcknowledge {
			sent[p.BTH.PSN] = p
		}
	}
	first := packets[0].BTH.PSN
	messages := len(sent) / rxePackets
	require.Greater(t, messages, 8)
	for m := range messages {
		var data []byte
		for i := range rxePackets {
			data = append(data, sent[wire.AddPSN(first, m*rxePackets+i)].Payload...)
		}
		require.NoError(t, pair.PostSend(rc.Request{Data: data}))
	}
	made := leaving(t, h)
	require.Len(t, made, messages*rxePackets)
	for _, p := range made {
		assert.Equal(t, sent[p.BTH.PSN], p)
	}
}
