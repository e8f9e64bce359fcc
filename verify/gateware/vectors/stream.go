// Transfer of vectors to and from a lane's program.

package vectors

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
)

// Flags of a lane's sum.
const (
	Overflowed = 1 << iota
	Undecided  // by the lane; the exact unit made the sum
)

// block is the number of vectors in a transfer.
const block = 4096

// batch is a block of vectors in transfer.
type batch struct {
	x     []uint32 // of all vectors in sequence
	kinds []string
}

// Stream sends count vectors through a program of a lane with this many ports. next makes a
// vector and names its kind. check gets each vector with its sum and flags, in the same order; it
// may run concurrently with next. An error from check ends the stream.
func Stream(ctx context.Context, program string, ports, count int, next func(x []uint32) (kind string),
	check func(kind string, x []uint32, y, flags uint32) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	command := exec.CommandContext(ctx, program)
	var said strings.Builder
	command.Stderr = &said
	in, err := command.StdinPipe()
	if err != nil {
		return err
	}
	out, err := command.StdoutPipe()
	if err != nil {
		return err
	}
	if err := command.Start(); err != nil {
		return err
	}
	sent, used := make(chan batch, 4), make(chan batch, 6)
	for range cap(used) {
		used <- batch{make([]uint32, 0, block*ports), make([]string, 0, block)}
	}
	go func() {
		defer close(sent)
		defer in.Close()
		send(ctx, in, ports, count, next, used, sent)
	}()
	err = receive(out, ports, sent, used, check)
	cancelled := err != nil
	if cancelled {
		cancel()
	}
	if ended := command.Wait(); ended != nil && !cancelled {
		err = ended
	}
	if err != nil && said.Len() > 0 {
		err = fmt.Errorf("%w\n%s", err, said.String())
	}
	return err
}

// send makes the vectors and writes them to the program.
func send(ctx context.Context, in io.Writer, ports, count int, next func([]uint32) string, used <-chan batch, sent chan<- batch) {
	bytes := make([]byte, 0, 4*block*ports)
	for count > 0 {
		var b batch
		select {
		case b = <-used:
		case <-ctx.Done():
			return
		}
		b.x, b.kinds, bytes = b.x[:0], b.kinds[:0], bytes[:0]
		for range min(count, block) {
			n := len(b.x)
			b.x = b.x[:n+ports]
			b.kinds = append(b.kinds, next(b.x[n:]))
			for _, e := range b.x[n:] {
				bytes = binary.LittleEndian.AppendUint32(bytes, e)
			}
		}
		count -= len(b.kinds)
		select {
		case sent <- b:
		case <-ctx.Done():
			return
		}
		if _, err := in.Write(bytes); err != nil {
			return // the program has ended; receive reports why
		}
	}
}

// receive reads the sums and calls check.
func receive(out io.Reader, ports int, sent <-chan batch, used chan<- batch, check func(string, []uint32, uint32, uint32) error) error {
	bytes := make([]byte, 8*block)
	for b := range sent {
		sums := bytes[:8*len(b.kinds)]
		if _, err := io.ReadFull(out, sums); err != nil {
			return fmt.Errorf("the lane ended too early: %w", err)
		}
		for i, kind := range b.kinds {
			y, flags := binary.LittleEndian.Uint32(sums[8*i:]), binary.LittleEndian.Uint32(sums[8*i+4:])
			if err := check(kind, b.x[i*ports:(i+1)*ports], y, flags); err != nil {
				return err
			}
		}
		used <- b
	}
	if n, err := out.Read(bytes[:1]); n > 0 || !errors.Is(err, io.EOF) {
		return errors.New("the lane gave more sums than it had vectors")
	}
	return nil
}
