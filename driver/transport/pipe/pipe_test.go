package pipe_test

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"

	"tributary/driver/transport/pipe"
)

// TestBothWays sends random bytes in random pieces in both directions at once, through pipes
// smaller and larger than a piece.
func TestBothWays(t *testing.T) {
	for _, capacity := range []int{1, 3, 100, 5000} {
		a, b := pipe.New(capacity)
		var wg sync.WaitGroup
		for i, ends := range [][2]*pipe.End{{a, b}, {b, a}} {
			rng := rand.New(rand.NewPCG(uint64(capacity), uint64(i)))
			sent := make([]byte, 20_000)
			for k := range sent {
				sent[k] = byte(rng.Uint32())
			}
			wg.Go(func() {
				for rest := sent; len(rest) > 0; {
					n := min(len(rest), 1+rng.IntN(300))
					if _, err := ends[0].Write(rest[:n]); err != nil {
						t.Error(err)
					}
					rest = rest[n:]
				}
			})
			wg.Go(func() {
				got := make([]byte, len(sent))
				if _, err := io.ReadFull(ends[1], got); err != nil || !bytes.Equal(got, sent) {
					t.Errorf("capacity %d: other bytes came, %v", capacity, err)
				}
			})
		}
		wg.Wait()
	}
}

// TestClose checks that written bytes can be read before the end. Reads and writes at the
// closed end fail, also those that wait.
func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := pipe.New(4)
		a.Write([]byte("last"))
		blocked := make(chan error, 2)
		go func() {
			_, err := a.Write([]byte("more"))
			blocked <- err
		}()
		go func() {
			_, err := a.Read(make([]byte, 1))
			blocked <- err
		}()
		synctest.Wait()
		a.Close()
		for range 2 {
			if err := <-blocked; !errors.Is(err, io.ErrClosedPipe) {
				t.Errorf("a call that waited: %v", err)
			}
		}
		got, err := io.ReadAll(b)
		if string(got) != "last" || err != nil {
			t.Errorf("read %q, %v", got, err)
		}
		if _, err := b.Write([]byte("x")); !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("write to the closed end: %v", err)
		}
	})
}

// TestWriterWaits checks that a full pipe makes its writer wait.
func TestWriterWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := pipe.New(4)
		done := make(chan struct{})
		go func() {
			a.Write([]byte("12345"))
			close(done)
		}()
		synctest.Wait()
		select {
		case <-done:
			t.Fatal("5 bytes went into a pipe of 4")
		default:
		}
		io.ReadFull(b, make([]byte, 1))
		<-done
	})
}
