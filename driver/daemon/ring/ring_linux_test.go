package ring

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

const patience = 2 * time.Minute

// sockets returns both ends of a connection.
func sockets(t testing.TB) (daemon, client net.Conn) {
	t.Helper()
	listener, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	if client, err = net.Dial("unix", listener.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if daemon, err = listener.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { daemon.Close(); client.Close() })
	for _, conn := range []net.Conn{daemon, client} {
		_ = conn.SetDeadline(time.Now().Add(patience))
	}
	return daemon, client
}

// ends returns both ends of rings in the memory of this process, where the race detector sees it.
func ends(t testing.TB, size Size) (daemon, client *End, memory []byte) {
	t.Helper()
	memory = make([]byte, size.Memory())
	daemon, err := Daemon(memory, size)
	if err != nil {
		t.Fatal(err)
	}
	if client, err = Client(memory, size); err != nil {
		t.Fatal(err)
	}
	one, other := sockets(t)
	if err := errors.Join(daemon.Attach(one), client.Attach(other)); err != nil {
		t.Fatal(err)
	}
	return daemon, client, memory
}

// TestBothWays: bytes in pieces of all sizes pass both ways at once, in order. Small rings wrap around
// thousands of times, and both sides wait for bytes and for room. In large ones long copies overlap.
func TestBothWays(t *testing.T) {
	t.Run("small", func(t *testing.T) { bothWays(t, Size{ToDaemon: 64, ToClient: 256}, 200_000, 600) })
	t.Run("large", func(t *testing.T) { bothWays(t, Size{ToDaemon: 64 << 10, ToClient: 256 << 10}, 20_000_000, 200_000) })
}

// bothWays sends bytes in pieces of at most a length.
func bothWays(t *testing.T, size Size, length, piece int) {
	daemon, client, _ := ends(t, size)
	var all sync.WaitGroup
	for seed, way := range []struct{ from, to *End }{{client, daemon}, {daemon, client}} {
		sent := make([]byte, length)
		random := rand.New(rand.NewPCG(uint64(seed), 1))
		for i := range sent {
			sent[i] = byte(random.Uint32())
		}
		all.Go(func() {
			random := rand.New(rand.NewPCG(uint64(seed), 2))
			for left := sent; len(left) > 0; {
				n := min(1+random.IntN(piece), len(left))
				if _, err := way.from.Write(left[:n]); err != nil {
					t.Error(err)
					return
				}
				left = left[n:]
			}
		})
		all.Go(func() {
			random := rand.New(rand.NewPCG(uint64(seed), 3))
			for left := sent; len(left) > 0; {
				p := make([]byte, 1+random.IntN(piece/2))
				n, err := way.to.Read(p)
				if err != nil || n > len(left) || !bytes.Equal(p[:n], left[:n]) {
					t.Errorf("%d bytes before the end: got %d others, %v", len(left), n, err)
					return
				}
				left = left[n:]
			}
		})
	}
	all.Wait()
}

// TestPut: a frame is put whole or not at all, and what is put counts until it is read.
func TestPut(t *testing.T) {
	daemon, client, _ := ends(t, Size{ToDaemon: 64, ToClient: 64})
	for _, step := range []struct {
		put, queued int
		fits        bool
	}{{40, 40, true}, {25, 40, false}, {24, 64, true}, {1, 64, false}, {0, 64, true}} {
		fits, err := daemon.Put(make([]byte, step.put))
		if fits != step.fits || err != nil || daemon.Queued() != step.queued {
			t.Errorf("put %d: %t, %v, %d queued", step.put, fits, err, daemon.Queued())
		}
	}
	if n, err := client.Read(make([]byte, 100)); n != 64 || err != nil {
		t.Errorf("read %d, %v", n, err)
	}
	if fits, err := daemon.Put(make([]byte, 65)); fits || err != nil {
		t.Errorf("a frame larger than the ring: %t, %v", fits, err)
	}
	if fits, err := daemon.Put(make([]byte, 64)); !fits || err != nil {
		t.Errorf("a frame as large as the ring: %t, %v", fits, err)
	}
}

// TestWriteAlone: a writer gets room though nobody of its side reads.
func TestWriteAlone(t *testing.T) {
	daemon, client, _ := ends(t, Size{ToDaemon: 64, ToClient: 64})
	wrote := make(chan error)
	go func() {
		_, err := client.Write(make([]byte, 10_000))
		wrote <- err
	}()
	if _, err := io.ReadFull(daemon, make([]byte, 10_000)); err != nil {
		t.Error(err)
	}
	if err := <-wrote; err != nil {
		t.Error(err)
	}
}

// TestCloseHere: Close ends a Read and a Write in progress, and later ones, also when there are bytes.
func TestCloseHere(t *testing.T) {
	daemon, client, _ := ends(t, Size{ToDaemon: 64, ToClient: 64})
	failed := make(chan error)
	go func() { _, err := client.Read(make([]byte, 1)); failed <- err }()
	go func() { _, err := client.Write(make([]byte, 65)); failed <- err }()
	for client.out.written.Load() < 64 { // the writer has begun
	}
	client.Close()
	for range 2 {
		if err := <-failed; !errors.Is(err, net.ErrClosed) {
			t.Errorf("got %v", err)
		}
	}
	if _, err := daemon.Put([]byte("late")); err != nil {
		t.Error(err)
	}
	if n, err := client.Read(make([]byte, 1)); n != 0 || !errors.Is(err, net.ErrClosed) {
		t.Errorf("read %d, %v", n, err)
	}
}

// TestCloseThere: the bytes that the other side wrote before its end can be read, such as half a frame.
func TestCloseThere(t *testing.T) {
	daemon, client, _ := ends(t, Size{ToDaemon: 64, ToClient: 64})
	if _, err := client.Write([]byte("half a fr")); err != nil {
		t.Fatal(err)
	}
	client.Close()
	if got, err := io.ReadAll(daemon); string(got) != "half a fr" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	if _, err := daemon.Write(make([]byte, 65)); err == nil {
		t.Error("a writer waits for room that nobody makes")
	}
}

// TestBellsInVain: bells without bytes wake nobody for good, and a socket full of them holds nobody up.
func TestBellsInVain(t *testing.T) {
	daemon, client, _ := ends(t, Size{ToDaemon: 64, ToClient: 64})
	for range 10_000 { // more than the socket holds
		client.in.wantsRoom.Store(1)
		client.bells.ring(client.in.wantsRoom)
	}
	read := make(chan int)
	go func() {
		n, _ := daemon.Read(make([]byte, 10))
		read <- n
	}()
	if _, err := client.Write([]byte("abc")); err != nil {
		t.Error(err)
	}
	if n := <-read; n != 3 {
		t.Errorf("read %d bytes", n)
	}
}

// TestImpossiblePositions: positions that the other side cannot have end the rings, and nothing else.
func TestImpossiblePositions(t *testing.T) {
	for _, position := range []uint64{65, 1 << 31, 1 << 32, 1 << 63, ^uint64(0) - 64} {
		daemon, client, _ := ends(t, Size{ToDaemon: 64, ToClient: 64})
		client.out.written.Store(position)
		if n, err := daemon.Read(make([]byte, 1000)); n != 0 || !errors.Is(err, ErrPosition) {
			t.Errorf("written %d: read %d, %v", position, n, err)
		}
		client.in.read.Store(position)
		if fits, err := daemon.Put([]byte("x")); fits || !errors.Is(err, ErrPosition) {
			t.Errorf("read %d: put %t, %v", position, fits, err)
		}
		if n, err := daemon.Write([]byte("x")); n != 0 || !errors.Is(err, ErrPosition) {
			t.Errorf("read %d: wrote %d, %v", position, n, err)
		}
		if daemon.Queued() != 0 {
			t.Errorf("read %d: %d bytes are queued", position, daemon.Queued())
		}
	}
}

// TestSizes: a client refuses sizes that do not fit its memory.
func TestSizes(t *testing.T) {
	for _, x := range []struct {
		size   Size
		memory int
	}{{Size{64, 63}, head + 127}, {Size{0, 64}, head + 64}, {Size{-64, 128}, head + 64}, {Size{64, 64}, head + 127}, {Size{64, 64}, head + 129}, {Size{1 << 31, 64}, 100}, {Size{64, 64}, 0}} {
		if _, err := Client(make([]byte, x.memory), x.size); err == nil {
			t.Errorf("%v in %d bytes", x.size, x.memory)
		}
	}
}

// FuzzGarbled changes words and bytes of the memory at will between the steps of the daemon's end. It must
// not read or write beyond the rings, nor believe a word that it has written itself.
func FuzzGarbled(f *testing.F) {
	step := func(what byte, offset uint16, value uint64) []byte {
		return binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint16([]byte{what}, offset), value)
	}
	read, put, garble := byte(0), byte(1), byte(2)
	for _, value := range []uint64{1, 63, 64, 65, 1 << 32, ^uint64(0)} {
		for _, offset := range []uint16{0, 64, 128, 192, head / 2, head/2 + 64, head/2 + 128, head/2 + 192} {
			f.Add(bytes.Join([][]byte{step(put, 60, 0), step(garble, offset, value), step(read, 64, 0), step(put, 64, 0), step(read, 1, 0)}, nil))
			f.Add(bytes.Join([][]byte{step(garble, 0, 30), step(garble, offset, value), step(read, 20, 0), step(put, 64, 0)}, nil))
		}
	}
	f.Fuzz(func(t *testing.T, steps []byte) {
		size := Size{ToDaemon: 64, ToClient: 128}
		guarded := bytes.Repeat([]byte{0xa5}, size.Memory()+2*lineBytes)
		memory := guarded[lineBytes:][:size.Memory():size.Memory()]
		clear(memory)
		e, err := Daemon(memory, size)
		if err != nil {
			t.Fatal(err)
		}
		var took, wrote uint64
		for ; len(steps) >= 11; steps = steps[11:] {
			offset, value := int(binary.LittleEndian.Uint16(steps[1:])), binary.LittleEndian.Uint64(steps[3:])
			switch steps[0] % 3 {
			case read:
				ready := binary.NativeEndian.Uint64(memory) - took
				if ready == 0 {
					continue // it would wait
				}
				p := make([]byte, offset+1)
				n, err := e.Read(p)
				if want := min(ready, uint64(len(p))); ready <= 64 && (n != int(want) || err != nil) || ready > 64 && (n != 0 || err != ErrPosition) {
					t.Fatalf("%d bytes are ready, and it read %d, %v", ready, n, err)
				}
				for i, x := range p[:n] {
					if x != memory[head:][(took+uint64(i))%64] {
						t.Fatalf("byte %d of %d is another one", i, n)
					}
				}
				took += uint64(n)
			case put:
				used := wrote - binary.NativeEndian.Uint64(memory[head/2+128:])
				fits, err := e.Put(make([]byte, offset))
				if want := used <= 128 && uint64(offset) <= 128-used; fits != want || (err != nil) != (used > 128) {
					t.Fatalf("%d of 128 bytes are used, and %d fit: %t, %v", used, offset, fits, err)
				}
				if fits {
					wrote += uint64(offset)
				}
				e.Ring()
			case garble:
				binary.NativeEndian.PutUint64(memory[offset%(len(memory)-7):], value)
			}
		}
		for i := range lineBytes {
			if guarded[i] != 0xa5 || guarded[len(guarded)-1-i] != 0xa5 {
				t.Fatal("it wrote beyond the memory")
			}
		}
	})
}
