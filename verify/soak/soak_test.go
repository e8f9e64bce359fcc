package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"

	"tributary/driver/frame"
	"tributary/driver/wire"
	"tributary/verify/model"
)

// asCard in the environment makes the test binary a card: the model, which gets
// the sums of "wrong" chunks wrong.
const asCard = "TRIBUTARY_SOAK_AS_CARD"

func TestMain(m *testing.M) {
	if how := os.Getenv(asCard); how != "" {
		if err := serve(strings.TrimPrefix(os.Args[2], "unix:"), how == "wrong"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// serve serves one host after another.
func serve(socket string, wrong bool) error {
	card, err := model.NewCard(model.Config{Lanes: 4, Ports: 8, Chunk: 16, Window: 4, Shell: wire.ShellStream, Link: 32})
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
		if wrong {
			end = &wrongLink{Conn: conn, scan: frame.NewScanner(frame.FromCard, 0)}
		}
		_ = card.Serve(end) // how a host leaves is its own affair
		conn.Close()
	}
}

// wrongLink changes a bit of every hundredth sum, with a CRC that fits.
type wrongLink struct {
	net.Conn
	scan *frame.Scanner
	sums int
}

func (w *wrongLink) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		rest = rest[w.scan.Feed(rest):]
		for f := (frame.Frame{}); w.scan.Next(&f); {
			if f.Kind == wire.KindResult {
				if w.sums++; w.sums%100 == 0 {
					f.Payload[1] ^= 4
				}
			}
			if _, err := w.Conn.Write(frame.Append(nil, &f.Header, f.Payload)); err != nil {
				return 0, err
			}
		}
	}
	return len(p), nil
}

// self returns this program, which is then the card.
func self(t *testing.T, how string) string {
	t.Helper()
	t.Setenv(asCard, how)
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return program
}

// TestSoak takes the model through two thousand faults. The virtual card has ten
// thousand of its own in `make soak`.
func TestSoak(t *testing.T) {
	s, err := soak(t.Context(), self(t, "right"), 1, 2000, false)
	if err != nil {
		t.Fatal(err)
	}
	if s.Total < 2000 || s.Results == 0 || s.Wrong+s.Failed != 0 {
		t.Errorf("%+v", s)
	}
	var out bytes.Buffer
	if err := s.print(&out, true); err != nil {
		t.Fatal(err)
	}
	var back summary
	if err := json.Unmarshal(out.Bytes(), &back); err != nil || back.Total != s.Total {
		t.Errorf("%v: %s", err, &out)
	}
	t.Logf("%+v", s)
}

// TestWrongCardIsFoundOut: a card that gets a bit wrong now and then ends the
// campaign, with the command line that does it again.
func TestWrongCardIsFoundOut(t *testing.T) {
	_, err := soak(t.Context(), self(t, "wrong"), 7, 100_000, false)
	if err == nil || !strings.Contains(err.Error(), "the sum is") || !strings.Contains(err.Error(), "go run ./verify/soak -seed 7 -faults 1") {
		t.Errorf("got %v", err)
	}
}

// TestDamage: what is damaged beyond what the CRC must catch is counted, and ends
// nothing.
func TestDamage(t *testing.T) {
	s, err := soak(t.Context(), self(t, "right"), 1, 500, true)
	if err != nil {
		t.Fatal(err)
	}
	if s.Faults["garbage"] == 0 || s.Faults["cut"] == 0 || s.Faults["drop"] != 0 {
		t.Errorf("%+v", s)
	}
}
