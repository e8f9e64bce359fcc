package wire_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"math/big"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tributary/driver/wire"
)

// Where headers are in a frame whose IP header has no options.
const (
	atIP  = 14
	atBTH = atIP + 20 + 8
)

// roceFrames returns the frames of testdata/roce.txt.
func roceFrames(t *testing.T) (frames [][]byte) {
	t.Helper()
	file, err := os.ReadFile("testdata/roce.txt")
	require.NoError(t, err)
	for line := range strings.Lines(string(file)) {
		if !strings.HasPrefix(line, "#") {
			frame, err := hex.DecodeString(strings.TrimSpace(line))
			require.NoError(t, err)
			frames = append(frames, frame)
		}
	}
	require.Greater(t, len(frames), 20)
	return frames
}

// TestICRCOfScapy: scapy has made these frames.
func TestICRCOfScapy(t *testing.T) {
	for _, frame := range roceFrames(t) {
		packet := frame[atIP:]
		body, ok := wire.CutICRC(packet)
		assert.True(t, ok, "%x", packet)
		assert.Equal(t, packet, wire.AppendICRC(bytes.Clone(body)))
	}
}

// TestICRCOfAnyFrame: scapy computes the ICRC of random frames, and reads the same fields in them.
func TestICRCOfAnyFrame(t *testing.T) {
	rng := rand.New(rand.NewPCG(21, 1))
	var input strings.Builder
	var headers []wire.BTH
	for range 200 {
		h := wire.BTH{
			Opcode: wire.Opcode(rng.UintN(0x11)), Solicited: rng.UintN(2) == 1, MigReq: rng.UintN(2) == 1, Pad: uint8(rng.UintN(4)),
			Version: uint8(rng.UintN(16)), PKey: uint16(rng.Uint32()), FECN: rng.UintN(2) == 1, BECN: rng.UintN(2) == 1,
			DestQP: rng.Uint32N(1 << 24), AckReq: rng.UintN(2) == 1, PSN: rng.Uint32N(1 << 24),
		}
		headers = append(headers, h)
		fmt.Fprintln(&input, hex.EncodeToString(roceFrame(rng, h.Append(nil), randomBytes(rng, rng.IntN(1100)))))
	}
	frames := strings.Fields(input.String())
	for i, fields := range scapyReads(t, frames) {
		h := headers[i]
		assert.Equal(t, map[string]any{
			"opcode": float64(h.Opcode), "solicited": flag(h.Solicited), "migreq": flag(h.MigReq), "padcount": float64(h.Pad),
			"version": float64(h.Version), "pkey": float64(h.PKey), "fecn": flag(h.FECN), "becn": flag(h.BECN),
			"dqpn": float64(h.DestQP), "ackreq": flag(h.AckReq), "psn": float64(h.PSN),
			"source": fields["source"], "ecn": fields["ecn"], "rest": frames[i][2*(atBTH+wire.BTHBytes) : len(frames[i])-8],
			"icrc": true, "rebuilt": true,
		}, fields)
	}
}

// TestAETHOfScapy: scapy reads the syndrome and MSN of an ACK and of a NAK.
func TestAETHOfScapy(t *testing.T) {
	rng := rand.New(rand.NewPCG(21, 2))
	want := []wire.AETH{{Syndrome: wire.SyndromeACK, MSN: 0xabcdef}, {Syndrome: wire.SyndromeSequence, MSN: 1}}
	var frames []string
	for _, h := range want {
		bth := wire.BTH{Opcode: wire.OpAcknowledge, PKey: wire.PKey}
		frames = append(frames, hex.EncodeToString(roceFrame(rng, bth.Append(nil), h.Append(nil))))
	}
	for i, fields := range scapyReads(t, frames) {
		assert.Equal(t, true, fields["icrc"])
		assert.EqualValues(t, want[i].Syndrome, fields["syndrome"])
		assert.EqualValues(t, want[i].MSN, fields["msn"])
	}
}

// scapyReads returns what testdata/roce.py prints of frames in hexadecimal.
func scapyReads(t *testing.T, frames []string) (all []map[string]any) {
	t.Helper()
	judge := exec.Command("python3", "testdata/roce.py")
	judge.Stdin = strings.NewReader(strings.Join(frames, "\n") + "\n")
	out, err := judge.Output()
	require.NoError(t, err, "%v", err)
	for line := range strings.Lines(string(out)) {
		var fields map[string]any
		require.NoError(t, json.Unmarshal([]byte(line), &fields))
		all = append(all, fields)
	}
	require.Len(t, all, len(frames))
	return all
}

func flag(set bool) float64 {
	if set {
		return 1
	}
	return 0
}

func randomBytes(rng *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b
}

// roceFrame returns a frame without FCS, with an IP header of random fields where the ICRC does not require
// others, and an IP checksum.
func roceFrame(rng *rand.Rand, bth, rest []byte) []byte {
	frame := append(randomBytes(rng, 12), 0x08, 0)
	ip := append([]byte{0x45, byte(rng.Uint32()), 0, 0, byte(rng.Uint32()), byte(rng.Uint32()), 0x40, 0, byte(rng.Uint32()), 17, 0, 0}, randomBytes(rng, 8)...)
	udp := append(randomBytes(rng, 2), 0x12, 0xb7, 0, 0, 0, 0)
	size := len(udp) + len(bth) + len(rest) + wire.ICRCBytes
	binary.BigEndian.PutUint16(ip[2:], uint16(len(ip)+size))
	binary.BigEndian.PutUint16(udp[4:], uint16(size))
	var sum uint32
	for i := 0; i < len(ip); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(ip[i:]))
	}
	sum = sum&0xffff + sum>>16
	binary.BigEndian.PutUint16(ip[10:], ^uint16(sum&0xffff+sum>>16))
	packet := append(append(append(ip, udp...), bth...), rest...)
	return append(frame, wire.AppendICRC(packet)...)
}

// TestICRCCoversTheRest: a change anywhere breaks the ICRC, except in the fields that change on the way.
func TestICRCCoversTheRest(t *testing.T) {
	frame := roceFrames(t)[4]
	free := map[int]bool{1: true, 8: true, 10: true, 11: true, 26: true, 27: true, 32: true}
	for at := range frame[atIP:] {
		packet := bytes.Clone(frame[atIP:])
		packet[at] ^= 0x10
		if at == 0 {
			continue // another version
		}
		_, ok := wire.CutICRC(packet)
		assert.Equal(t, free[at], ok, "byte %d", at)
	}
}

// TestICRCOfOptions: an IP header with options moves the fields behind it.
func TestICRCOfOptions(t *testing.T) {
	packet := bytes.Clone(roceFrames(t)[4][atIP:])
	options := append([]byte{0x46}, packet[1:20]...)
	options = append(append(options, 1, 1, 1, 0), packet[20:len(packet)-wire.ICRCBytes]...)
	whole := wire.AppendICRC(options)
	for at, covered := range map[int]bool{1: false, 8: false, 22: true, 26: true, 30: false, 31: false, 32: true, 36: false} {
		changed := bytes.Clone(whole)
		changed[at] ^= 0xff
		_, ok := wire.CutICRC(changed)
		assert.Equal(t, covered, !ok, "byte %d", at)
	}
}

// TestShortPackets: what has no room for an ICRC has none.
func TestShortPackets(t *testing.T) {
	whole := wire.AppendICRC(roceFrames(t)[2][atIP : atBTH+wire.BTHBytes])
	_, ok := wire.CutICRC(whole)
	assert.True(t, ok)
	for n := range whole {
		_, ok := wire.CutICRC(whole[:n])
		assert.False(t, ok, "%d bytes", n)
	}
	for words := range byte(5) { // of an IP header
		short := bytes.Clone(whole[:len(whole)-wire.ICRCBytes])
		short[0] = 0x40 | words
		_, ok = wire.CutICRC(wire.AppendICRC(short))
		assert.False(t, ok, "%d words", words)
	}
}

// TestICRCIsLinear: one payload's register serves headers of any size, and registers add up as payloads do.
func TestICRCIsLinear(t *testing.T) {
	rng := rand.New(rand.NewPCG(21, 3))
	for _, n := range []int{0, 1, 3, 4, 255, 256, 1024, 2048, 4096} {
		one, other := randomBytes(rng, n), randomBytes(rng, n)
		both := make([]byte, n)
		for i := range both {
			both[i] = one[i] ^ other[i]
		}
		assert.Equal(t, wire.ICRCPayload(both), wire.ICRCPayload(one)^wire.ICRCPayload(other), n)
		for _, extra := range []int{0, wire.ImmBytes, wire.RETHBytes, wire.RETHBytes + wire.ImmBytes} {
			headers := append([]byte{0x45}, randomBytes(rng, 19+8+wire.BTHBytes+extra)...)
			got := wire.ICRCCombine(wire.ICRCHeaders(headers), wire.ICRCPayload(one), n)
			assert.Equal(t, wire.ICRC(append(headers, one...)), got, "%d, %d bytes", extra, n)
		}
	}
}

// TestICRCAdvance: advancing is appending zeros.
func TestICRCAdvance(t *testing.T) {
	const before = 0x12345678
	for _, n := range []int{0, 1, 2, 3, 100, 4096} {
		assert.Equal(t, ^crc32.Update(^uint32(before), crc32.IEEETable, make([]byte, n)), wire.ICRCAdvance(before, n), n)
	}
}

// TestFieldsOfRoCEHeaders: the codecs write each field where the table has it, and read it there.
func TestFieldsOfRoCEHeaders(t *testing.T) {
	for _, header := range wire.RoCEHeaders {
		end := 0
		for _, field := range header.Fields {
			assert.Equal(t, end, field.Bit, "%s.%s", header.Name, field.Name)
			end += field.Bits
			want := new(big.Int).Lsh(big.NewInt(1), uint(field.Bits))
			want.Sub(want, big.NewInt(1)).Lsh(want, uint(8*header.Bytes-end))
			bytes := want.FillBytes(make([]byte, header.Bytes))
			got := recode(t, header.Name, bytes)
			if strings.HasPrefix(field.Name, "resv") {
				bytes = make([]byte, header.Bytes)
			}
			assert.Equal(t, bytes, got, "%s.%s", header.Name, field.Name)
		}
		assert.Equal(t, 8*header.Bytes, end, header.Name)
	}
}

// recode parses a header and appends it again. Nothing shorter is a header.
func recode(t *testing.T, name string, b []byte) []byte {
	t.Helper()
	var short, ok bool
	var out []byte
	switch name {
	case "BTH":
		var h wire.BTH
		_, short = wire.ParseBTH(b[1:])
		h, ok = wire.ParseBTH(b)
		out = h.Append(nil)
	case "RETH":
		var h wire.RETH
		_, short = wire.ParseRETH(b[1:])
		h, ok = wire.ParseRETH(b)
		out = h.Append(nil)
	case "AETH":
		var h wire.AETH
		_, short = wire.ParseAETH(b[1:])
		h, ok = wire.ParseAETH(b)
		out = h.Append(nil)
	case "ImmDt":
		var imm uint32
		_, short = wire.ParseImm(b[1:])
		imm, ok = wire.ParseImm(b)
		out = wire.AppendImm(nil, imm)
	}
	assert.True(t, ok, name)
	assert.False(t, short, name)
	return out
}

// TestOpcodes: the table has each opcode once, by number, and its columns agree.
func TestOpcodes(t *testing.T) {
	for i, row := range wire.Opcodes {
		if i > 0 {
			assert.Greater(t, row.Opcode, wire.Opcodes[i-1].Opcode)
		}
		info, ok := row.Opcode.Info()
		assert.True(t, ok)
		assert.Equal(t, row, info)
		assert.Equal(t, row.Name, row.Opcode.String())
		assert.Equal(t, strings.Contains(row.Name, "imm") && row.Data(), row.Imm, row.Name)
		assert.Equal(t, strings.HasPrefix(row.Name, "write_") && row.First, row.RETH, row.Name)
		if row.Data() {
			assert.NotEqual(t, row.Send, row.Write, row.Name)
			assert.Equal(t, strings.Contains(row.Name, "first") || strings.Contains(row.Name, "only"), row.First, row.Name)
			assert.Equal(t, strings.Contains(row.Name, "last") || strings.Contains(row.Name, "only"), row.Last, row.Name)
			extra := 0
			if row.RETH {
				extra += wire.RETHBytes
			}
			if row.Imm {
				extra += wire.ImmBytes
			}
			assert.Equal(t, extra, row.Extra, row.Name)
		}
	}
	_, ok := wire.Opcode(0x15).Info()
	assert.False(t, ok)
	assert.Equal(t, "opcode 21", wire.Opcode(0x15).String())
}

// TestSyndromes: bits 6:5 decide.
func TestSyndromes(t *testing.T) {
	for s := range wire.Syndrome(0x7f) {
		assert.Equal(t, s < 0x20, s.IsACK(), "%#x", s)
		assert.Equal(t, s >= 0x20 && s < 0x40, s.IsRNR(), "%#x", s)
	}
}

// TestPSNsWrap: PSNs are counted modulo 2^24.
func TestPSNsWrap(t *testing.T) {
	for _, c := range []struct {
		from, psn uint32
		n         int
	}{{0, 0, 0}, {0, 1, 1}, {0xffffff, 0, 1}, {0, 0xffffff, -1}, {0xfffffe, 3, 5}, {0, 0x7fffff, 0x7fffff}, {0, 0x800000, -0x800000}, {5, 3, -2}} {
		assert.Equal(t, c.n, wire.PSNsFrom(c.from, c.psn), "%#x, %#x", c.from, c.psn)
		assert.Equal(t, c.psn, wire.AddPSN(c.from, c.n), "%#x, %d", c.from, c.n)
	}
}
