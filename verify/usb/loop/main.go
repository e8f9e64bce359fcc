// Command loop sends bytes to the USB device usb: and checks that the same come
// back; whatever the device does to borders of packets, a stream is a stream.
// It prints how many bytes a second passed each way.
//
//	loop -bytes N [-write BYTES]   with the transport that the driver uses
//	loop -bytes N -bare            with gousb alone: what the transport is measured against
//	loop -stuck                    writes to a device that takes nothing, and gives up
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"tributary/driver/transport"
	_ "tributary/driver/transport/usb"
)

func main() {
	bytes := flag.Int("bytes", 1<<20, "bytes to send")
	write := flag.Int("write", 64<<10, "bytes in a write, at most; they are of all sizes below that when it is odd")
	bare := flag.Bool("bare", false, "use gousb alone")
	stuck := flag.Bool("stuck", false, "expect that the device takes nothing")
	flag.Parse()
	if err := run(*bytes, *write, *bare, *stuck); err != nil {
		fmt.Fprintln(os.Stderr, "loop:", err)
		os.Exit(1)
	}
}

func run(bytes, write int, bare, stuck bool) error {
	if bare {
		return report(bytes, func() error { return loopBare(bytes) })
	}
	conn, err := transport.Open(context.Background(), "usb:", transport.Needs{})
	if err != nil {
		return err
	}
	if stuck {
		return giveUp(conn)
	}
	err = report(bytes, func() error {
		return loop(
			func() error { return send(conn, bytes, write) },
			func() error { return receive(conn, bytes) })
	})
	return errors.Join(err, conn.Close())
}

// report prints how fast bytes have passed.
func report(bytes int, pass func() error) error {
	start := time.Now()
	if err := pass(); err != nil {
		return err
	}
	fmt.Printf("%.1f MB/s\n", float64(bytes)/1e6/time.Since(start).Seconds())
	return nil
}

// loop sends and receives at once.
func loop(send, receive func() error) error {
	sent := make(chan error, 1)
	go func() { sent <- send() }()
	return errors.Join(receive(), <-sent)
}

// value is byte i of the stream: no period of it is one of packets.
func value(i int) byte { return byte(i + i/251 + i/65521) }

func fill(p []byte, from int) {
	for i := range p {
		p[i] = value(from + i)
	}
}

func check(p []byte, from int) error {
	for i, b := range p {
		if b != value(from+i) {
			return fmt.Errorf("byte %d came back as %02x, not %02x", from+i, b, value(from+i))
		}
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
		fill(p, from)
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
		if err := check(buf[:n], got); err != nil {
			return err
		}
		got += n
	}
	return nil
}

// giveUp closes a conn in whose Write the device has bytes wait.
func giveUp(conn transport.Conn) error {
	wrote := make(chan error, 1)
	go func() {
		_, err := conn.Write(make([]byte, 64<<20))
		wrote <- err
	}()
	select {
	case err := <-wrote:
		return fmt.Errorf("the device took all, or broke: %w", err)
	case <-time.After(300 * time.Millisecond):
	}
	start := time.Now()
	err := conn.Close()
	if <-wrote == nil {
		return errors.New("the write that was given up has no error")
	}
	fmt.Printf("closed after %s\n", time.Since(start).Round(time.Millisecond))
	return err
}
