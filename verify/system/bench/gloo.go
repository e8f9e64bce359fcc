package main

// The peers of all-reduce among processes: Gloo, and a ring over Unix sockets in Go.

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
	"unsafe"
)

// glooOverRing is Gloo's time for 25 MB among 4 processes in terms of the ring's, for machines without
// Gloo: Debian's libgloo 0.5.0 on two idle cores of an Intel Xeon. Two busy ones of an AMD EPYC: 1.12 to 1.15.
const glooOverRing = 0.86

// buildGloo builds the program that times Gloo. It returns "" if the machine lacks Gloo's headers, which
// `make gloo` installs.
func buildGloo(ctx context.Context) (program string, err error) {
	if _, err := output(ctx, "c++", "-fsyntax-only", "-include", "gloo/config.h", "-x", "c++", os.DevNull); err != nil {
		return "", ctx.Err()
	}
	program = filepath.Join(folder, "gloo")
	_, err = output(ctx, "c++", "-std=c++17", "-O3", "-march=native", "verify/system/bench/programs/gloo.cpp", "-o", program, "-lgloo")
	return program, err
}

// glooSeconds returns the time of a call of Gloo among processes, the mean of calls.
func glooSeconds(ctx context.Context, program string, processes, bytes, calls int) (float64, error) {
	meeting, err := os.MkdirTemp("", "gloo")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(meeting)
	text, err := output(ctx, program, meeting, strconv.Itoa(processes), strconv.Itoa(bytes), strconv.Itoa(calls))
	if err != nil {
		return 0, err
	}
	return strconv.ParseFloat(strings.TrimSpace(text), 64)
}

// ringSettings are those of a process of a ring. Process r listens at FOLDER/r, and sends to the next.
type ringSettings struct {
	Folder   string
	Workers  int
	Rank     int
	Elements int
}

// startRing starts the processes of a ring.
func startRing(ctx context.Context, sockets string, workers, elements int) (players, error) {
	var all players
	for rank := range workers {
		p, err := startPlayer(ctx, "ring", ringSettings{sockets, workers, rank, elements})
		if err != nil {
			all.kill()
			return nil, err
		}
		all = append(all, p)
	}
	for _, p := range all {
		if _, err := p.hear(); err != nil {
			all.kill()
			return nil, err
		}
	}
	return all, nil
}

// ring is a process of a ring all-reduce: reduce-scatter, then all-gather, in as many segments as there
// are processes.
type ring struct {
	ringSettings
	from, to net.Conn
	array    []float32
	scratch  []float32
}

// playRing takes part in a ring.
func playRing() error {
	r := &ring{}
	if err := settings(&r.ringSettings); err != nil {
		return err
	}
	if err := r.connect(); err != nil {
		return err
	}
	r.array = make([]float32, r.Elements)
	r.scratch = make([]float32, ringPiece)
	reports := json.NewEncoder(os.Stdout)
	if err := reports.Encode(report{}); err != nil {
		return err
	}
	return obey(reports, r.reduce, func() error { return firstCall(r.array, r.Rank, r.Workers, r.reduce) })
}

// connect joins the neighbours.
func (r *ring) connect() error {
	listener, err := net.Listen("unix", filepath.Join(r.Folder, strconv.Itoa(r.Rank)))
	if err != nil {
		return err
	}
	next := filepath.Join(r.Folder, strconv.Itoa((r.Rank+1)%r.Workers))
	for until := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		if r.to, err = net.Dial("unix", next); err == nil || time.Now().After(until) {
			break
		}
	}
	if err != nil {
		return err
	}
	r.from, err = listener.Accept()
	return err
}

// ringPiece is how many elements a process of a ring adds at once.
const ringPiece = 64 << 10

// reduce sums the arrays of all processes.
func (r *ring) reduce() error {
	for step := range 2 * (r.Workers - 1) {
		sent := make(chan error, 1)
		go func() {
			_, err := r.to.Write(bytesOf(r.segment(r.Rank - step)))
			sent <- err
		}()
		if err := r.receive(r.segment(r.Rank-step-1), step < r.Workers-1); err != nil {
			return err
		}
		if err := <-sent; err != nil {
			return err
		}
	}
	return nil
}

// segment returns segment n of the array, modulo their number.
func (r *ring) segment(n int) []float32 {
	n = (n%r.Workers + r.Workers) % r.Workers
	return r.array[n*len(r.array)/r.Workers : (n+1)*len(r.array)/r.Workers]
}

// receive receives a segment, and adds it or puts it in place.
func (r *ring) receive(segment []float32, add bool) error {
	if !add {
		_, err := io.ReadFull(r.from, bytesOf(segment))
		return err
	}
	for len(segment) > 0 {
		piece := segment[:min(len(segment), ringPiece)]
		segment = segment[len(piece):]
		got := r.scratch[:len(piece)]
		if _, err := io.ReadFull(r.from, bytesOf(got)); err != nil {
			return err
		}
		for i, x := range got {
			piece[i] += x
		}
	}
	return nil
}

// bytesOf returns the memory of elements.
func bytesOf(elements []float32) []byte {
	if len(elements) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&elements[0])), 4*len(elements))
}
