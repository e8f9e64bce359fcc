package main

// The test binary as a card.

import (
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"testing"

	"tributary/driver/cpu"
	"tributary/driver/frame"
	"tributary/driver/model"
	"tributary/driver/wire"
)

// asCard in the environment makes the test binary a card: one of cards, or the model with one of
// the defects in lies.
const asCard = "TRIBUTARY_SOAK_AS_CARD"

// server is a card that serves a host on a connection.
type server interface {
	Serve(rw io.ReadWriteCloser) error
}

// cards are the correct cards.
var cards = map[string]func() (server, error){
	"model": func() (server, error) {
		return model.NewCard(model.Config{Lanes: 1, Ports: ports, Chunk: 8, Window: 64, Jobs: 4, Shell: wire.ShellStream, Link: 32})
	},
	"cpu": func() (server, error) {
		return cpu.New(cpu.Config{Lanes: 1, Ports: ports, Chunk: 8, Window: 64, Jobs: 4, Shell: wire.ShellStream, Link: 32})
	},
}

func TestMain(m *testing.M) {
	if how := os.Getenv(asCard); how != "" {
		if err := serve(strings.TrimPrefix(os.Args[2], "unix:"), how); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	flag.Parse()
	os.Exit(m.Run())
}

// lies are defects in a result, which a card makes at random times with a right CRC. They report
// whether they have changed the frame.
var lies = map[string]func(*frame.Frame) bool{
	"wrong sum": func(f *frame.Frame) bool {
		f.Payload[1] ^= 4
		return true
	},
	"wrong partial sum": func(f *frame.Frame) bool {
		f.Payload[1] ^= 4
		return f.Flags&wire.FlagPartial != 0
	},
	"wrong mask": func(f *frame.Frame) bool {
		f.Mask &= f.Mask - 1
		return f.Flags&wire.FlagPartial != 0 && f.Mask != 0
	},
	"nobody missing": func(f *frame.Frame) bool {
		partial := f.Flags&wire.FlagPartial != 0
		f.Flags &^= wire.FlagPartial
		f.Mask |= f.Receivers // all members, while none is evicted
		return partial
	},
	"mask too small": func(f *frame.Frame) bool {
		whole := f.Flags&wire.FlagPartial == 0
		f.Flags |= wire.FlagPartial
		f.Mask &= f.Mask - 1
		return whole && f.Mask != 0
	},
}

// serve serves one host after another.
func serve(socket, how string) error {
	lie := lies[how]
	if lie != nil {
		how = "model"
	}
	card, err := cards[how]()
	if err != nil {
		return err
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	fmt.Println("listening unix:" + socket)
	for {
		conn, err := listener.Accept()
		if err != nil {
			return err
		}
		end := io.ReadWriteCloser(conn)
		if lie != nil {
			end = &wrongLink{Conn: conn, scan: frame.NewScanner(frame.FromCard, 0), lie: lie}
		}
		_ = card.Serve(end) // the host may leave in any way
		conn.Close()
	}
}

// wrongLink changes one in twenty of the results that its defect can change.
type wrongLink struct {
	net.Conn
	scan    *frame.Scanner
	lie     func(*frame.Frame) bool
	results int
}

func (w *wrongLink) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		rest = rest[w.scan.Feed(rest):]
		for f := (frame.Frame{}); w.scan.Next(&f); {
			if _, err := w.Conn.Write(w.passed(&f)); err != nil {
				return 0, err
			}
		}
	}
	return len(p), nil
}

// passed returns the bytes to send for a frame.
func (w *wrongLink) passed(f *frame.Frame) []byte {
	wrong := *f
	wrong.Payload = slices.Clone(f.Payload)
	if f.Kind == wire.KindResult && w.lie(&wrong) {
		if w.results++; w.results%20 == 0 {
			return frame.Append(nil, &wrong.Header, wrong.Payload)
		}
	}
	return frame.Append(nil, &f.Header, f.Payload)
}

// self returns the path of this program as a card.
func self(t *testing.T, how string) string {
	t.Helper()
	t.Setenv(asCard, how)
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return program
}
