package walks

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"tributary/driver/model"
	"tributary/driver/wire"
)

// Geometry of the cards: room for the jobs of all walks.
const (
	cardPorts  = 3
	cardWindow = 4
	cardJobs   = 2
	cardChunk  = 4 // elements: one for each port, and one that counts
)

// flags returns the command line of hwgen for a shell. One lane and short chunks keep the
// simulation fast.
func flags(shell, dir string) []string {
	number := strconv.Itoa
	return []string{"-lanes", "1", "-format", "int32", "-workers", number(cardPorts), "-chunk", number(cardChunk),
		"-window", number(cardWindow), "-jobs", number(cardJobs), "-shell", shell, "-o", dir}
}

// Build generates a card with a shell into a folder, compiles it, and returns its program; source
// is programs/card.cpp. The program is the card's own testbench with another main function. So
// the caller drives the clock, which a card behind a socket does not allow.
func Build(ctx context.Context, hwgen, source, shell, dir string) (program string, err error) {
	run := func(name string, args ...string) {
		if err == nil {
			var said []byte
			if said, err = exec.CommandContext(ctx, name, args...).CombinedOutput(); err != nil {
				err = fmt.Errorf("%s %q: %w\n%s", filepath.Base(name), args, err, said)
			}
		}
	}
	sim := filepath.Join(dir, "sim")
	built := filepath.Join(sim, "build", "model")
	run(hwgen, flags(shell, dir)...)
	library := os.Getenv("VERILATED_LIBRARY")
	if library == "" {
		library = filepath.Join(sim, "build")
	}
	library = filepath.Join(library, "libverilated.a")
	// In one piece: every piece would read Verilator's headers.
	run("make", "-C", sim, "build/model/libVcard.a", library, "OPT=-O1", "VM_PARALLEL_BUILDS=0")
	include := filepath.Join(os.Getenv("VERILATOR_ROOT"), "include")
	program = filepath.Join(sim, "build", "walks")
	run("c++", "-std=c++17", "-O1", "-Wall", "-isystem", include, "-isystem", filepath.Join(include, "vltstd"), "-I", sim, "-I", built,
		source, filepath.Join(built, "libVcard.a"), library, "-pthread", "-o", program)
	return program, err
}

// Simulated is a Verilated card in its own process.
type Simulated struct {
	shared bool
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
	said   bytes.Buffer // its standard error
	now    uint64
}

// Start starts a card that Build has built; Close ends it. seed seeds its random pauses.
func Start(program, shell string, seed uint64) (*Simulated, error) {
	s := &Simulated{shared: shell != "none", cmd: exec.Command(program, strconv.FormatUint(seed, 10))}
	s.cmd.Stderr = &s.said
	in, err := s.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	s.in, s.out = in, bufio.NewReader(out)
	return s, s.cmd.Start()
}

// Close ends the card.
func (s *Simulated) Close() error {
	s.in.Close()
	return s.cmd.Wait()
}

func (s *Simulated) Shared() bool { return s.shared }
func (s *Simulated) Now() uint64  { return s.now }

func (s *Simulated) Send(port int, p *model.Packet) error {
	line := fmt.Sprintf("packet %d %d %d %d %d %d %d %d", port, p.Kind, p.Job, p.Format, p.Epoch, p.Rank, p.VID, p.Length)
	for b := p.Payload; len(b) > 0; b = b[4:] {
		line += fmt.Sprintf(" %d", binary.LittleEndian.Uint32(b))
	}
	_, err := fmt.Fprintln(s.in, line)
	return err
}

func (s *Simulated) Register(write bool, addr uint32, value uint64) (code uint8, read uint64, err error) {
	line := fmt.Sprintf("read %d", addr)
	if write {
		line = fmt.Sprintf("write %d %d", addr, value)
	}
	if _, err := fmt.Fprintln(s.in, line); err != nil {
		return 0, 0, err
	}
	answer, err := s.line()
	if err != nil {
		return 0, 0, err
	}
	_, err = fmt.Sscanf(answer, "reply %d %d", &code, &read)
	return code, read, err
}

func (s *Simulated) Until(cycle uint64) ([]model.Packet, error) {
	if _, err := fmt.Fprintln(s.in, "until", cycle); err != nil {
		return nil, err
	}
	var sent []model.Packet
	for {
		line, err := s.line()
		if err != nil {
			return nil, err
		}
		if now, ok := strings.CutPrefix(line, "now "); ok {
			s.now, err = strconv.ParseUint(now, 10, 64)
			return sent, err
		}
		p, err := parseSent(line)
		if err != nil {
			return nil, err
		}
		sent = append(sent, p)
	}
}

// parseSent reads a line of what the card has sent.
func parseSent(line string) (model.Packet, error) {
	var n []uint64
	words := strings.Fields(line)
	for _, word := range words[min(1, len(words)):] {
		v, err := strconv.ParseUint(word, 10, 64)
		if err != nil {
			return model.Packet{}, fmt.Errorf("the card printed %q: %w", line, err)
		}
		n = append(n, v)
	}
	if len(n) < 11 || words[0] != "sent" {
		return model.Packet{}, fmt.Errorf("the card printed %q", line)
	}
	p := model.Packet{Header: model.Header{
		Version: wire.Version, Kind: wire.Kind(n[0]), Flags: uint8(n[1]), Job: uint8(n[2]), Format: wire.Format(n[3]), Epoch: uint16(n[4]),
		Rank: uint8(n[5]), Code: wire.Code(n[6]), VID: uint32(n[7]), Length: uint16(n[8]), Mask: n[9], Receivers: n[10],
	}}
	for _, element := range n[11:] {
		p.Payload = binary.LittleEndian.AppendUint32(p.Payload, uint32(element))
	}
	return p, nil
}

// line reads a line of the card's answer.
func (s *Simulated) line() (string, error) {
	line, err := s.out.ReadString('\n')
	line = strings.TrimSuffix(line, "\n")
	if err != nil || strings.HasPrefix(line, "FAILED") {
		return "", fmt.Errorf("the card ended after %q: %s: %w", line, &s.said, err)
	}
	return line, nil
}
