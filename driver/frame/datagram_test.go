package frame

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"hash/crc32"
	"strings"
	"testing"

	"tributary/driver/wire"
)

// crc32c computes the CRC bit by bit, as NETWORK.md defines it.
func crc32c(b []byte) uint32 {
	r := ^uint32(0)
	for _, x := range b {
		r ^= uint32(x)
		for range 8 {
			r = r>>1 ^ wire.CastagnoliPolynomial*(r&1)
		}
	}
	return ^r
}

// TestCRC32C compares the CRC with the check value of the catalogue of CRCs (CRC-32/ISCSI).
func TestCRC32C(t *testing.T) {
	if got := crc32c([]byte("123456789")); got != 0xe3069283 {
		t.Fatalf("%08x, want e3069283", got)
	}
	if got := crc32.Checksum([]byte("123456789"), castagnoli); got != 0xe3069283 {
		t.Fatalf("%08x, want e3069283", got)
	}
}

// TestDatagramsByHand builds and checks datagrams whose headers and payloads are those of the
// hand-written frames: the bytes between sync word and header CRC, and those between the CRCs.
func TestDatagramsByHand(t *testing.T) {
	for _, w := range handWritten(t) {
		info, _ := w.kind.Info()
		head := info.HeaderBytes(true)
		want := bytes.Clone(w.bytes[wire.SyncBytes : wire.SyncBytes+head])
		var payload []byte
		if info.Payload {
			payload = w.bytes[wire.SyncBytes+head+wire.CRCBytes : len(w.bytes)-wire.CRCBytes]
			want = append(want, payload...)
		}
		want = binary.LittleEndian.AppendUint32(want, crc32c(want))
		direction := ToCard
		if info.FromCard {
			direction = FromCard
		}
		c := NewDatagramChecker(direction)
		var f Frame
		if !c.Check(want, &f) {
			t.Fatalf("%s: it fails the checks: %+v", info.Name, c.Stats())
		}
		if got := AppendDatagram(nil, &f.Header, f.Payload); !bytes.Equal(got, want) {
			t.Errorf("%s: % x, want % x", info.Name, got, want)
		}
		if !bytes.Equal(f.Payload, payload) {
			t.Errorf("%s: payload % x, want % x", info.Name, f.Payload, payload)
		}
		if n := info.DatagramBytes(len(payload)); len(want) != n {
			t.Errorf("%s: %d bytes, the table says %d", info.Name, len(want), n)
		}
	}
}

// TestDatagramAsBytes compares an ask with bytes that were written by hand.
func TestDatagramAsBytes(t *testing.T) {
	want := unhex("22 00 03 00 34 12 05 00 78 56 34 12 00 00")
	want = binary.LittleEndian.AppendUint32(want, crc32c(want))
	h := Header{Kind: wire.KindAsk, Job: 3, Epoch: 0x1234, Rank: 5, VID: 0x12345678}
	if got := AppendDatagram(nil, &h, nil); !bytes.Equal(got, want) {
		t.Errorf("% x, want % x", got, want)
	}
}

func unhex(text string) []byte {
	b, err := hex.DecodeString(strings.ReplaceAll(text, " ", ""))
	if err != nil {
		panic(err)
	}
	return b
}

// TestPaddedDatagram checks that zeros follow an array that ends within the chunk, whatever the
// buffer held before.
func TestPaddedDatagram(t *testing.T) {
	h := Header{Kind: wire.KindData, Format: wire.BF16, Length: 4}
	used := bytes.Repeat([]byte{0xff}, 100)
	for n := 0; n <= 8; n += 2 {
		elements := []byte{1, 2, 3, 4, 5, 6, 7, 8}[:n]
		want := AppendDatagram(nil, &h, append(bytes.Clone(elements), make([]byte, 8-n)...))
		if got := AppendPaddedDatagram(used[:0], &h, elements); !bytes.Equal(got, want) {
			t.Errorf("%d bytes of 8: % x, want % x", n, got, want)
		}
	}
}

// signed returns b with its CRC.
func signed(b []byte) []byte { return binary.LittleEndian.AppendUint32(bytes.Clone(b), crc32c(b)) }

// changed returns b with another byte at an index.
func changed(b []byte, at int, to byte) []byte {
	c := bytes.Clone(b)
	c[at] = to
	return c
}

// TestWrongDatagrams: each wrong datagram is dropped, and its first failed check is counted, in the
// order of NETWORK.md, section 2.
func TestWrongDatagrams(t *testing.T) {
	data := unhex("12 02 00 01 00 00 00 00 00 00 00 00 02 00" + "01 02 03 04 05 06 07 08") // 2 of fp32
	reply := unhex("b2 00 00 00 00 00 00 00 00 00 00 00 07 00" + "01 00 00 00 00 00 00 00")
	result := append(unhex("82 02 00 01 00 00 00 00 00 00 00 00 01 00"+"01 00 00 00 00 00 00 00"+"01 00 00 00 00 00 00 00"), 1, 2, 3, 4)
	largest := append(changed(changed(data[:14], 12, 0), 13, 8), make([]byte, wire.MaxDatagramPayload)...) // 2,048 of fp32
	larger := append(changed(changed(data[:14], 12, 1), 13, 8), make([]byte, wire.MaxDatagramPayload+4)...)
	good, short, crc := DatagramStats{Packets: 1}, DatagramStats{Short: 1}, DatagramStats{CRC: 1}
	version, kind, length := DatagramStats{BadVersion: 1}, DatagramStats{BadKind: 1}, DatagramStats{BadLength: 1}
	for name, c := range map[string]struct {
		direction Direction
		bytes     []byte
		want      DatagramStats
	}{
		"data":                    {ToCard, signed(data), good},
		"reply":                   {FromCard, signed(reply), good},
		"result":                  {FromCard, signed(result), good},
		"largest payload":         {ToCard, signed(largest), good},
		"nothing":                 {ToCard, nil, short},
		"17 bytes":                {ToCard, signed(data[:13]), short},
		"17 bytes, no CRC":        {ToCard, data[:17], short},
		"a flipped bit":           {ToCard, changed(signed(data), 20, 0x55), crc},
		"a flipped bit in front":  {ToCard, changed(signed(data), 0, 0x02), crc},
		"a flipped bit in CRC":    {ToCard, changed(signed(data), 25, 0), crc},
		"other version":           {ToCard, signed(changed(data, 0, 0x11)), version},
		"other version and kind":  {ToCard, signed(changed(data, 0, 0x71)), version},
		"unknown kind":            {ToCard, signed(changed(data, 0, 0x72)), kind},
		"kind 0":                  {ToCard, signed(changed(data, 0, 0x02)), kind},
		"data from a card":        {FromCard, signed(data), kind},
		"a reply to a card":       {ToCard, signed(reply), kind},
		"length 0":                {ToCard, signed(changed(data, 12, 0)[:14]), length},
		"length 0 with a payload": {ToCard, signed(changed(data, 12, 0)), length},
		"length over the size":    {ToCard, signed(changed(data, 12, 3)), length},
		"length below the size":   {ToCard, signed(changed(data, 12, 1)), length},
		"a byte more":             {ToCard, signed(append(bytes.Clone(data), 0)), length},
		"unknown format":          {ToCard, signed(changed(data, 3, 99)), length},
		"other format":            {ToCard, signed(changed(data, 3, byte(wire.BF16))), length},
		"above the largest":       {ToCard, signed(larger), length},
		"a reply cut":             {FromCard, signed(reply[:21]), length},
		"a reply with a payload":  {FromCard, signed(append(bytes.Clone(reply), 1, 2, 3, 4)), length},
		"a result without mask":   {FromCard, signed(result[:20]), length},
	} {
		checker := NewDatagramChecker(c.direction)
		var f Frame
		if got := checker.Check(c.bytes, &f); got != (c.want == good) {
			t.Errorf("%s: %t", name, got)
		}
		if got := checker.Stats(); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

// TestDataToACard: a card sizes data by its own format, and refuses more than its chunk.
func TestDataToACard(t *testing.T) {
	header := unhex("12 02 00 01 00 00 00 00 00 00 00 00 02 00") // 2 of fp32
	bf16 := changed(header, 3, byte(wire.BF16))
	for name, c := range map[string]struct {
		header  []byte
		payload int
		want    DatagramStats
	}{
		"data":                   {header, 8, DatagramStats{Packets: 1}},
		"another format":         {bf16, 8, DatagramStats{Packets: 1}},
		"another format's size":  {bf16, 4, DatagramStats{BadLength: 1}},
		"the largest":            {changed(header, 12, 3), 12, DatagramStats{Packets: 1}},
		"more than the chunk":    {changed(header, 12, 4), 16, DatagramStats{BadLength: 1}},
		"none":                   {changed(header, 12, 0), 0, DatagramStats{BadLength: 1}},
		"an ask with a payload":  {changed(header, 0, 0x22), 8, DatagramStats{BadLength: 1}},
		"an ask that has length": {changed(header, 0, 0x22), 0, DatagramStats{Packets: 1}},
	} {
		checkOne(t, name, NewCardDatagramChecker(3, wire.FP32), c.header, c.payload, c.want)
	}
}

// checkOne checks a datagram with a payload of so many bytes, and compares what the checker counted.
func checkOne(t *testing.T, name string, checker *DatagramChecker, header []byte, payload int, want DatagramStats) {
	t.Helper()
	var f Frame
	checker.Check(signed(append(bytes.Clone(header), make([]byte, payload)...)), &f)
	if got := checker.Stats(); got != want {
		t.Errorf("%s: %+v, want %+v", name, got, want)
	}
}

// TestResultsToACard: a card takes results, replays and statuses of its parent, and sizes results as it
// sizes data.
func TestResultsToACard(t *testing.T) {
	header := append(unhex("82 02 00 01 00 00 00 00 00 00 00 00 02 00"), make([]byte, 16)...) // 2 of fp32
	status := changed(header[:22], 0, 0xa2)
	for name, c := range map[string]struct {
		header  []byte
		payload int
		want    DatagramStats
	}{
		"a result":            {header, 8, DatagramStats{Packets: 1}},
		"a replay":            {changed(header, 0, 0x92), 8, DatagramStats{Packets: 1}},
		"a status":            {status, 0, DatagramStats{Packets: 1}},
		"a reply":             {changed(status, 0, 0xb2), 0, DatagramStats{BadKind: 1}},
		"a damaged reply":     {changed(status, 0, 0xb2), 1, DatagramStats{BadKind: 1}},
		"data":                {changed(header, 0, 0x12), 8, DatagramStats{BadKind: 1}},
		"another format":      {changed(header, 3, byte(wire.BF16)), 8, DatagramStats{Packets: 1}},
		"the largest":         {changed(header, 12, 3), 12, DatagramStats{Packets: 1}},
		"more than the chunk": {changed(header, 12, 4), 16, DatagramStats{BadLength: 1}},
		"none":                {changed(header, 12, 0), 0, DatagramStats{BadLength: 1}},
	} {
		checkOne(t, name, NewChildDatagramChecker(3, wire.FP32), c.header, c.payload, c.want)
	}
}

// TestDatagramsAllocateNothing: neither building nor checking a datagram allocates.
func TestDatagramsAllocateNothing(t *testing.T) {
	h := Header{Kind: wire.KindData, Format: wire.FP32, Length: 256}
	elements := make([]byte, 1000)
	buf := make([]byte, 0, 2*MaxDatagramBytes)
	c := NewDatagramChecker(ToCard)
	var f Frame
	if n := testing.AllocsPerRun(100, func() {
		if !c.Check(AppendPaddedDatagram(buf, &h, elements), &f) {
			t.Error("it fails the checks")
		}
		AppendDatagram(buf, &f.Header, f.Payload)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
