// Package receiver tests the gateware's receiver of the byte-stream link. It sends random bytes,
// complete, truncated, damaged and refused frames, and sync words and frames inside payloads. It
// compares the output with a second implementation of the specification (driver/wire/SPEC.md,
// sections 3 and 6).
//
// The receiver is agg_byte_fifo and agg_frame_rx, Verilated.
package receiver

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"os/exec"
	"strconv"
	"strings"

	"tributary/verify/gateware/vectors"
)

//go:embed programs/receiver.cpp
var program string

//go:embed programs/receiver.v
var module string

// Shape is a receiver's parameters.
type Shape struct {
	Link  int // bytes in a word of the link
	Step  int // bytes in a word of payload
	Chunk int // most elements in a chunk
	Elem  int // bytes of an element
}

// Shapes are the receivers under test: every width of a link, and words of payload that are
// narrower than the window.
var Shapes = []Shape{
	{Link: 1, Step: 4, Chunk: 16, Elem: 4},
	{Link: 2, Step: 4, Chunk: 16, Elem: 4},
	{Link: 4, Step: 4, Chunk: 16, Elem: 4},
	{Link: 8, Step: 8, Chunk: 16, Elem: 4},
	{Link: 4, Step: 1, Chunk: 9, Elem: 1},
	{Link: 8, Step: 2, Chunk: 9, Elem: 2},
}

// String names a shape, as in link32_step4_chunk16_elem4.
func (s Shape) String() string {
	return fmt.Sprintf("link%d_step%d_chunk%d_elem%d", 8*s.Link, s.Step, s.Chunk, s.Elem)
}

// window returns the number of bytes that the parser sees at once, as hwgen chooses it.
func (s Shape) window() int { return max(4, s.Link) }

// Build builds one program with all Shapes from the leaves in folders, and returns its path.
func Build(ctx context.Context, b *vectors.Builder, folders []string) (string, error) {
	p := vectors.Program{Name: "receiver", Text: program, Optimize: "-O1"}
	list := "#define RECEIVERS"
	for _, s := range Shapes {
		p.Header += fmt.Sprintf("#include \"V%s.h\"\n", s)
		list += fmt.Sprintf(" RECEIVER(%s, %d, %d)", s, s.Link, s.Step)
		p.Modules = append(p.Modules, vectors.Module{
			Name: s.String(), Top: "receiver", Text: module, Folders: folders,
			Parameters: []string{
				fmt.Sprint("LINK_BYTES=", s.Link), fmt.Sprint("WINDOW=", s.window()), fmt.Sprint("STEP=", s.Step),
				fmt.Sprint("CHUNK=", s.Chunk), fmt.Sprint("ELEM_BYTES=", s.Elem),
			},
		})
	}
	p.Header += list + "\n"
	return b.Program(ctx, p)
}

// Receive returns a receiver's output for a link's bytes. seed draws the pauses of the link and
// of the consumer.
func Receive(ctx context.Context, program string, s Shape, seed uint64, stream []byte) (*Received, error) {
	cmd := exec.CommandContext(ctx, program, s.String(), strconv.FormatUint(seed, 10))
	cmd.Stdin = bytes.NewReader(stream)
	var said strings.Builder
	cmd.Stderr = &said
	text, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %s", s, err, said.String())
	}
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	r := &Received{}
	last := len(lines) - 1
	c := &r.Counts
	if _, err := fmt.Sscanf(lines[last], "counts %d %d %d %d %d %d", &c.Frames, &c.Hunted, &c.HeaderCRC, &c.BadVersion, &c.BadKind, &c.BadLength); err != nil {
		return nil, fmt.Errorf("%s: its last line is %q: %w", s, lines[last], err)
	}
	r.Items = lines[:last]
	return r, nil
}
