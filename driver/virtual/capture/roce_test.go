package capture_test

// Captures with RDMA connections, through a card with shell roce.

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net/netip"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tributary/driver/model"
	"tributary/driver/virtual/capture"
	"tributary/driver/virtual/ethernet"
	"tributary/driver/virtual/rc"
	"tributary/driver/wire"
	"tributary/verify/system/frames"
)

// rdmaHost returns the address of host n as an RDMA host's.
func rdmaHost(n byte) rc.Address {
	return rc.Address{MAC: [6]byte(hostMAC(n)), IP: netip.AddrFrom4([4]byte{192, 168, 84, n})}
}

// rdma returns a packet of 64 elements from host 2 + rank to the other, at its VID.
func rdma(rank byte, vid int, opcode wire.Opcode) *rc.Packet {
	payload := make([]byte, 256)
	for i := range 64 {
		binary.LittleEndian.PutUint32(payload[4*i:], uint32(1000*int(rank+1)+64*vid+i))
	}
	p := &rc.Packet{
		From: rdmaHost(2 + rank), To: rdmaHost(3 - rank), SourcePort: 0xc000 + uint16(rank), ECN: wire.ECT0,
		BTH:     wire.BTH{Opcode: opcode, MigReq: true, PKey: wire.PKey, DestQP: 0x20 + uint32(1-rank), PSN: wire.AddPSN(0xffffff, vid)},
		Payload: payload, Imm: 0x0a0b0c0d, RETH: wire.RETH{VA: 1 << 33, RKey: 5, Length: 1024}, AETH: wire.AETH{Syndrome: wire.SyndromeACK},
	}
	if opcode == wire.OpAcknowledge {
		p.Payload = nil
	}
	return p
}

// addRoCE has a job of two hosts at two ports: a message of SEND and one of RDMA WRITE, a packet that is lost
// and sent again, a mark, a damaged packet, a READ, an ACK, and traffic of no connection.
func addRoCE(in *input) {
	in.stage(0, 0, 1)
	for rank := range uint64(2) {
		in.add(0,
			write(wire.MemberAddr(wire.RegMemberAddress, int(rank)), uint64(wire.RoCEPort)<<32|0xc0a85402+rank),
			write(wire.ConnectionAddr(int(rank)), 0x20+1-rank|0xffffff<<24|(1-rank)<<48))
	}
	in.add(0, write(wire.RegJobChunk, 64), write(wire.RegJobWindow, 4), write(wire.RegJobCommit, 1<<32))
	send := func(rank byte, vid int, opcode wire.Opcode) { in.add(int(rank), rdma(rank, vid, opcode).Append(nil)) }
	send(0, 0, wire.OpSendFirst)
	send(1, 0, wire.OpSendFirst)
	send(0, 2, wire.OpSendLastImm) // 1 is lost
	send(1, 1, wire.OpSendMiddle)
	send(1, 2, wire.OpSendLastImm)
	damaged := rdma(0, 1, wire.OpSendMiddle).Append(nil)
	damaged[100] ^= 1
	body := damaged[:len(damaged)-ethernet.FCSBytes]
	in.add(0, ethernet.AppendFCS(body[:len(body):len(body)]))
	marked := rdma(0, 1, wire.OpSendMiddle)
	marked.ECN = wire.CE
	in.add(0, marked.Append(nil))
	send(1, 2, wire.OpSendLastImm) // its ACK was lost
	send(1, 2, wire.OpAcknowledge)
	send(0, 3, wire.OpReadRequest)
	send(0, 3, wire.OpWriteOnlyImm)
	send(1, 3, wire.OpWriteOnly)
	other := rdma(0, 0, wire.OpSendOnly)
	other.BTH.DestQP = 0x99
	in.add(0, other.Append(nil))
}

// replayRoCE passes a file through a card with shell roce.
func replayRoCE(t *testing.T, file []byte) (out []byte, counters map[string]uint64) {
	t.Helper()
	c, err := capture.Open(bytes.NewReader(file))
	require.NoError(t, err)
	endpoint, err := model.NewEndpoint(model.Config{Lanes: 4, Ports: 4, Window: 4, Format: wire.Int32, Shell: wire.ShellRoCE, Link: 64, Ethernet: c.Ports()}, frames.CardAddress)
	require.NoError(t, err)
	card, err := ethernet.New(endpoint, c.Ports())
	require.NoError(t, err)
	var b bytes.Buffer
	_, err = c.Replay(card, &b)
	require.NoError(t, err)
	return b.Bytes(), capture.Counters(endpoint)
}

// TestRoCE: the golden has what leaves, and scapy finds each ICRC right. A stale ICRC would not be.
func TestRoCE(t *testing.T) {
	in := newInput(2)
	addRoCE(in)
	file := in.file(t)
	golden(t, "roce.pcapng", file)
	out, counters := replayRoCE(t, file)
	golden(t, "roce.out.pcapng", out)
	delete(counters, "frames")
	assert.Equal(t, map[string]uint64{
		"stored": 8, "chunks": 4, "beats": 4 * 16, "results": 8, "replays": 1, "released_early": 1, "duplicate": 1, "ce": 1,
		"roce_icrc": 1, "roce_opcode": 1, "passed": 2,
	}, counters)

	var judged strings.Builder
	vids := map[uint32][]int{}
	for _, f := range open(t, out) {
		p, err := rc.Parse(f.frame)
		if !f.out || err != nil || p.BTH.DestQP == 0x99 || p.BTH.Opcode == wire.OpAcknowledge {
			continue
		}
		vid := wire.PSNsFrom(0xffffff, p.BTH.PSN)
		vids[p.BTH.DestQP] = append(vids[p.BTH.DestQP], vid)
		for i := range 64 {
			require.EqualValues(t, 3000+2*(64*vid+i), binary.LittleEndian.Uint32(p.Payload[4*i:]), "VID %d, element %d", vid, i)
		}
		assert.Equal(t, vid == 1, p.ECN == wire.CE)
		fmt.Fprintln(&judged, hex.EncodeToString(f.frame[:len(f.frame)-ethernet.FCSBytes]))
	}
	assert.Equal(t, map[uint32][]int{0x21: {0, 2, 1, 2, 3}, 0x20: {0, 1, 2, 2, 3}}, vids)
	scapyAgrees(t, judged.String())
}

// scapyAgrees checks that scapy makes the same bytes, ICRC included, from what it reads in frames, and that it
// notices when an ICRC is another.
func scapyAgrees(t *testing.T, lines string) {
	t.Helper()
	last := strings.LastIndex(lines, "\n")
	stale := []byte(lines[strings.LastIndex(lines[:last], "\n")+1:])
	stale[2*(14+20+8+12+16)] ^= 1 // a digit of the payload
	judge := exec.Command("python3", "../../wire/testdata/roce.py")
	judge.Stdin = strings.NewReader(lines + string(stale))
	out, err := judge.Output()
	require.NoError(t, err)
	answers := strings.Split(strings.TrimSpace(string(out)), "\n")
	require.Len(t, answers, strings.Count(lines, "\n")+1)
	for i, answer := range answers {
		right := strings.Contains(answer, `"icrc": true`) && strings.Contains(answer, `"rebuilt": true`)
		assert.Equal(t, i < len(answers)-1, right, answer)
	}
}
