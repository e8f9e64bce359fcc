package record_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tributary/driver/transport"
	"tributary/driver/transport/pipe"
	"tributary/driver/transport/record"
	"tributary/driver/wire"
)

// log is a small recording, written by hand from the format's description. The host writes
// "ask", the card replies "yes!", and the host writes "bye".
var log = unhex(`
	54 52 49 42 4c 4f 47 01  00 80 c6 a4 7e 8d 03 00
	e8 03 00 00 00 00 00 00  03 00 00 00  61 73 6b
	d0 07 00 00 00 00 00 00  04 00 00 80  79 65 73 21
	00 ca 9a 3b 00 00 00 00  03 00 00 00  62 79 65`)

func unhex(s string) []byte {
	b, err := hex.DecodeString(strings.Join(strings.Fields(s), ""))
	if err != nil {
		panic(err)
	}
	return b
}

func readAll(r io.Reader) ([]record.Entry, time.Time, error) {
	l, err := record.NewReader(r)
	if err != nil {
		return nil, time.Time{}, err
	}
	var all []record.Entry
	for {
		e, err := l.Next()
		if err != nil {
			return all, l.Begun(), err
		}
		all = append(all, e)
	}
}

func TestReader(t *testing.T) {
	all, begun, err := readAll(bytes.NewReader(log))
	if err != io.EOF || len(all) != 3 {
		t.Fatalf("%d entries, %v", len(all), err)
	}
	if want := time.Unix(1_000_000, 0); !begun.Equal(want) {
		t.Errorf("begun %s, want %s", begun, want)
	}
	for i, want := range []record.Entry{
		{At: time.Microsecond, Bytes: []byte("ask")},
		{At: 2 * time.Microsecond, FromCard: true, Bytes: []byte("yes!")},
		{At: time.Second, Bytes: []byte("bye")},
	} {
		if got := all[i]; got.At != want.At || got.FromCard != want.FromCard || !bytes.Equal(got.Bytes, want.Bytes) {
			t.Errorf("entry %d is %+v, want %+v", i, got, want)
		}
	}
}

// TestReaderDamaged truncates the log at every byte.
func TestReaderDamaged(t *testing.T) {
	ends := map[int]int{16: 0, 31: 1, 47: 2} // the ends of entries
	for n := range len(log) {
		all, _, err := readAll(bytes.NewReader(log[:n]))
		var damaged *record.DamagedError
		switch entries, whole := ends[n]; {
		case n < 16:
			if !errors.Is(err, record.ErrNoLog) {
				t.Errorf("cut off at %d: %v", n, err)
			}
		case whole:
			if err != io.EOF || len(all) != entries {
				t.Errorf("cut off at %d: %d entries, %v", n, len(all), err)
			}
		case !errors.As(err, &damaged):
			t.Errorf("cut off at %d: %v", n, err)
		}
	}
	other := bytes.Clone(log)
	other[7] = 3
	if _, err := record.NewReader(bytes.NewReader(other)); !errors.Is(err, record.ErrNoLog) {
		t.Errorf("another version: %v", err)
	}
	huge := bytes.Clone(log)
	huge[27] = 0x7f
	if _, _, err := readAll(bytes.NewReader(huge)); err == io.EOF {
		t.Error("an entry of gigabytes is not refused")
	}
}

// TestRecord records a conversation and reads its log.
func TestRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host, card := pipe.New(100)
		var file bytes.Buffer
		before := time.Now()
		conn := record.Record(host, &file)
		io.WriteString(conn, "ask")
		io.WriteString(card, "yes!")
		buf := make([]byte, 10)
		n, _ := conn.Read(buf)
		io.WriteString(conn, "bye")
		if err := conn.Close(); err != nil {
			t.Fatal(err)
		}
		all, begun, err := readAll(&file)
		if err != io.EOF || len(all) != 3 {
			t.Fatalf("%d entries, %v", len(all), err)
		}
		if !begun.Equal(before) {
			t.Errorf("begun %s", begun)
		}
		for i, want := range []record.Entry{{Bytes: []byte("ask")}, {FromCard: true, Bytes: buf[:n]}, {Bytes: []byte("bye")}} {
			if all[i].FromCard != want.FromCard || !bytes.Equal(all[i].Bytes, want.Bytes) || i > 0 && all[i].At < all[i-1].At {
				t.Errorf("entry %d is %+v, want %+v", i, all[i], want)
			}
		}
	})
}

// full is a disk that accepts a number of writes.
type full int

func (f *full) Write(p []byte) (int, error) {
	if *f--; *f < 0 {
		return 0, errors.New("disk full")
	}
	return len(p), nil
}

// TestRecordDiskFull checks that the link continues and that Close returns the error.
func TestRecordDiskFull(t *testing.T) {
	host, card := pipe.New(100)
	disk := full(2)
	conn := record.Record(host, &disk)
	for range 5 {
		if _, err := io.WriteString(conn, "x"); err != nil {
			t.Fatal(err)
		}
	}
	buf := make([]byte, 10)
	if n, _ := io.ReadFull(card, buf[:5]); n != 5 {
		t.Errorf("%d bytes passed", n)
	}
	if err := conn.Close(); err == nil || !strings.Contains(err.Error(), "disk full") {
		t.Errorf("close: %v", err)
	}
}

func play(t *testing.T) (conn io.ReadWriteCloser) {
	t.Helper()
	conn, err := record.Playback(bytes.NewReader(log))
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

func TestPlayback(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := play(t)
		got := make(chan string)
		go func() {
			buf := make([]byte, 3) // shorter than the reply
			text := ""
			for {
				n, err := conn.Read(buf)
				text += string(buf[:n])
				if err != nil {
					got <- text
					return
				}
			}
		}()
		synctest.Wait()
		select {
		case <-got:
			t.Fatal("the answer came before the question")
		default:
		}
		for _, piece := range []string{"a", "skb", "ye"} { // other pieces than recorded
			if _, err := io.WriteString(conn, piece); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if err := conn.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		if text := <-got; text != "yes!" {
			t.Errorf("came: %q", text)
		}
	})
}

func TestPlaybackDeviations(t *testing.T) {
	for name, c := range map[string]struct {
		writes string
		read   bool
		offset int64
		words  string
	}{
		"other byte":    {"ax", false, 1, "78 was written, 73 was recorded"},
		"too much":      {"askbye!", true, 6, "1 bytes more were written"},
		"too little":    {"askb", true, 4, "2 bytes that were recorded were not written"},
		"nothing":       {"", false, 0, "6 bytes that were recorded"},
		"answer unread": {"askbye", false, 6, "4 bytes that came from the card were not read"},
	} {
		t.Run(name, func(t *testing.T) {
			conn := play(t)
			_, writeErr := io.WriteString(conn, c.writes)
			if c.read && writeErr == nil {
				io.ReadFull(conn, make([]byte, 4))
			}
			err := conn.Close()
			var deviation *record.DeviationError
			if !errors.As(err, &deviation) || deviation.Offset != c.offset || !strings.Contains(err.Error(), c.words) {
				t.Errorf("close: %v; want %q at %d", err, c.words, c.offset)
			}
		})
	}
	if _, err := record.Playback(strings.NewReader("no log")); !errors.Is(err, record.ErrNoLog) {
		t.Errorf("no log: %v", err)
	}
	if _, err := record.Playback(bytes.NewReader(log[:40])); err == nil {
		t.Error("a log that is cut off is played")
	}
}

// FuzzReader checks, for any file, that reading ends and that the entries have the size of the
// file.
func FuzzReader(f *testing.F) {
	f.Add(log)
	f.Add(log[:40])
	f.Add([]byte("TRIBLOG\x01"))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, file []byte) {
		all, _, err := readAll(bytes.NewReader(file))
		size := 16
		for _, e := range all {
			size += 12 + len(e.Bytes)
		}
		if err == io.EOF && size != len(file) || size > len(file) && !errors.Is(err, record.ErrNoLog) {
			t.Errorf("%d entries of %d bytes in a file of %d, %v", len(all), size, len(file), err)
		}
	})
}

// packetLog is the log of an ask and two answers, the second marked CE, written by hand.
var packetLog = unhex(`
	54 52 49 42 4c 4f 47 02  00 80 c6 a4 7e 8d 03 00
	e8 03 00 00 00 00 00 00  03 00 00 00  61 73 6b
	d0 07 00 00 00 00 00 00  04 00 00 a0  79 65 73 21
	d0 07 00 00 00 00 00 00  02 00 00 b0  6e 6f`)

func TestReaderOfPackets(t *testing.T) {
	l, err := record.NewReader(bytes.NewReader(packetLog))
	if err != nil || !l.Packets() {
		t.Fatal(err)
	}
	all, _, err := readAll(bytes.NewReader(packetLog))
	if err != io.EOF || len(all) != 3 {
		t.Fatalf("%d entries, %v", len(all), err)
	}
	for i, want := range []record.Entry{
		{At: time.Microsecond, Bytes: []byte("ask")},
		{At: 2 * time.Microsecond, FromCard: true, ECN: wire.ECT0, Bytes: []byte("yes!")},
		{At: 2 * time.Microsecond, FromCard: true, ECN: wire.CE, Bytes: []byte("no")},
	} {
		if got := all[i]; !reflect.DeepEqual(got, want) {
			t.Errorf("entry %d is %+v, want %+v", i, got, want)
		}
	}
	if _, err := record.Playback(bytes.NewReader(packetLog)); err == nil {
		t.Error("it is played back")
	}
}

// echo is a link of packets that answers each batch with its packets, marked CE.
type echo struct{ came chan []byte }

func (e echo) ReadPackets(batch []transport.Packet) (int, error) {
	b, ok := <-e.came
	if !ok {
		return 0, io.EOF
	}
	batch[0] = transport.Packet{Bytes: b, ECN: wire.CE}
	return 1, nil
}

func (e echo) WritePackets(buf []byte, ends []int) error {
	start := 0
	for _, end := range ends {
		e.came <- buf[start:end]
		start = end
	}
	return nil
}

func (e echo) Limits() transport.PacketLimits { return transport.PacketLimits{} }

func (e echo) Close() error {
	close(e.came)
	return nil
}

// TestRecordPackets records packets and reads their log: an entry for each.
func TestRecordPackets(t *testing.T) {
	var file bytes.Buffer
	conn := record.NewRecorder(&file, true).RecordPackets(echo{make(chan []byte, 2)})
	if err := conn.WritePackets([]byte("onethree"), []int{3, 8}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := conn.ReadPackets(make([]transport.Packet, 1)); err != nil {
			t.Fatal(err)
		}
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	all, _, err := readAll(&file)
	if err != io.EOF || len(all) != 4 {
		t.Fatalf("%d entries, %v", len(all), err)
	}
	for i, want := range []record.Entry{{Bytes: []byte("one")}, {Bytes: []byte("three")}, {FromCard: true, ECN: wire.CE, Bytes: []byte("one")}, {FromCard: true, ECN: wire.CE, Bytes: []byte("three")}} {
		if all[i].At = 0; !reflect.DeepEqual(all[i], want) {
			t.Errorf("entry %d is %+v, want %+v", i, all[i], want)
		}
	}
}
