// Command loop sends bytes to a USB device and checks that the same bytes return, whatever
// packets the device uses. It prints the bytes per second in each direction.
//
//	loop -bytes N [-write BYTES]   with the driver's transport
//	loop -bytes N -bare            with gousb alone, as the reference
//	loop -stuck                    writes to a device that takes nothing, and gives up
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"time"

	"tributary/driver/transport"
	_ "tributary/driver/transport/usb"
)

func main() {
	card := flag.String("card", "usb:", "the device")
	size := flag.Int("bytes", 1<<20, "bytes to send")
	write := flag.Int("write", 64<<10, "bytes in a write, at most; they are of all sizes below that when it is odd")
	bare := flag.Bool("bare", false, "use gousb alone")
	stuck := flag.Bool("stuck", false, "expect that the device takes nothing")
	flag.Parse()
	if err := run(*card, *size, *write, *bare, *stuck); err != nil {
		fmt.Fprintln(os.Stderr, "loop:", err)
		os.Exit(1)
	}
}

func run(card string, size, write int, bare, stuck bool) error {
	if bare {
		return report(size, func() error { return loopBare(size) })
	}
	conn, err := transport.Open(context.Background(), card, transport.Needs{})
	if err != nil {
		return err
	}
	if stuck {
		return giveUp(conn)
	}
	err = report(size, func() error {
		return loop(
			func() error { return send(conn, size, write) },
			func() error { return receive(conn, size) })
	})
	return errors.Join(err, conn.Close())
}

// report prints the speed of pass.
func report(size int, pass func() error) error {
	start := time.Now()
	if err := pass(); err != nil {
		return err
	}
	fmt.Printf("%.1f MB/s\n", float64(size)/1e6/time.Since(start).Seconds())
	return nil
}

// loop sends and receives concurrently.
func loop(send, receive func() error) error {
	sent := make(chan error, 1)
	go func() { sent <- send() }()
	return errors.Join(receive(), <-sent)
}

// pattern repeats in the stream: random bytes. Its length is prime, so that it has no period in
// common with packets or transfers.
var pattern = func() []byte {
	p := make([]byte, 65521)
	random := rand.NewChaCha8([32]byte{})
	_, _ = random.Read(p) // never fails
	return p
}()

// pieces splits p, which starts at byte from of the stream, where the pattern starts again.
func pieces(p []byte, from int, each func(piece, want []byte, from int) error) error {
	for len(p) > 0 {
		want := pattern[from%len(pattern):]
		n := min(len(p), len(want))
		if err := each(p[:n], want[:n], from); err != nil {
			return err
		}
		p, from = p[n:], from+n
	}
	return nil
}

func fill(piece, want []byte, _ int) error {
	copy(piece, want)
	return nil
}

func check(piece, want []byte, from int) error {
	if !bytes.Equal(piece, want) {
		return fmt.Errorf("bytes %d to %d came back changed", from, from+len(piece))
	}
	return nil
}

func send(to io.Writer, end, write int) error {
	buf := make([]byte, write)
	for from, size := 0, write; from < end; {
		if write%2 == 1 {
			size = 1 + (size+from)%write
		}
		p := buf[:min(size, end-from)]
		if err := pieces(p, from, fill); err != nil {
			return err
		}
		if _, err := to.Write(p); err != nil {
			return err
		}
		from += len(p)
	}
	return nil
}

func receive(from io.Reader, end int) error {
	buf := make([]byte, 64<<10)
	for got := 0; got < end; {
		n, err := from.Read(buf)
		if err != nil {
			return fmt.Errorf("after %d bytes: %w", got, err)
		}
		if err := pieces(buf[:n], got, check); err != nil {
			return err
		}
		got += n
	}
	return nil
}

// giveUp closes a conn while a Write waits for the device.
func giveUp(conn transport.Conn) error {
	wrote := make(chan error, 1)
	go func() {
		_, err := conn.Write(make([]byte, 64<<20))
		wrote <- err
	}()
	select {
	case err := <-wrote:
		return fmt.Errorf("the write did not time out: %w", err)
	case <-time.After(300 * time.Millisecond):
	}
	start := time.Now()
	err := conn.Close()
	if <-wrote == nil {
		return errors.New("the canceled write returned no error")
	}
	fmt.Printf("closed after %s\n", time.Since(start).Round(time.Millisecond))
	return err
}
