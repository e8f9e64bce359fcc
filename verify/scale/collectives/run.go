package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
)

// times is what the simulator prints, in seconds.
type times struct {
	StepsEnd float64 `json:"steps_end"` // when the last member ended its last step
	End      float64 `json:"end"`       // when all streams had arrived
}

// simulator runs simulator/collectives.cpp.
type simulator struct {
	path  string
	c     configuration
	alpha float64 // seconds
}

// errMissing: SimGrid is not installed.
var errMissing = errors.New("SimGrid is missing; type: sudo apt-get install -y --no-install-recommends libsimgrid-dev")

// build compiles the simulator into a folder.
func build(ctx context.Context, source, dir string) (path string, err error) {
	if err := exec.CommandContext(ctx, "pkg-config", "--exists", "simgrid").Run(); ctx.Err() != nil {
		return "", ctx.Err()
	} else if err != nil {
		return "", errMissing
	}
	path = filepath.Join(dir, "collectives")
	compile := exec.CommandContext(ctx, "g++", "-std=c++17", "-O2", "-Wall", "-Wextra", "-Werror", "-o", path, filepath.Join(source, "collectives.cpp"), "-lsimgrid")
	if out, err := compile.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return path, nil
}

// simulate runs the simulator with so many steps of each kind, if the algorithm has steps.
func (s *simulator) simulate(ctx context.Context, x experiment, scatter, gather int, bundled bool) (t times, err error) {
	algorithm := "ring"
	switch x.algorithm {
	case tree:
		algorithm = "cards"
	case atp, atpRacks:
		algorithm = "parameters"
	}
	flag := map[bool]float64{true: 1}
	args := []string{algorithm}
	for _, p := range []struct {
		name  string
		value float64
	}{
		{"racks", float64(x.cluster.Racks)}, {"per_rack", float64(x.cluster.PerRack)}, {"equipped", float64(x.equipped())},
		{"host_latency", s.c.delay()}, {"rate", s.c.rate()}, {"alpha", s.alpha}, {"card", s.c.cardSeconds(x.cluster)},
		{"chunk", float64(s.c.ChunkBytes)}, {"bytes", x.array.Bytes}, {"bundled", flag[bundled]},
		{"agent", flag[x.algorithm == rinaAgent]}, {"scatter_steps", float64(scatter)}, {"gather_steps", float64(gather)},
		{"ports", float64(x.cluster.PerRack)}, {"servers", float64(x.servers())},
	} {
		args = append(args, fmt.Sprintf("%s=%.12g", p.name, p.value))
	}
	command := exec.CommandContext(ctx, s.path, args...)
	var stderr strings.Builder
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		return t, fmt.Errorf("%s: %w: %s", x, err, stderr.String())
	}
	return t, json.Unmarshal(out, &t)
}

// seconds returns the time of an all-reduce, by its closed form if it is not simulated. Equal steps are simulated once and multiplied.
func (s *simulator) seconds(ctx context.Context, x experiment) (float64, error) {
	if !x.simulated() {
		return s.c.closed(x, s.alpha), nil
	}
	if x.algorithm != rina && x.algorithm != rinaAgent {
		t, err := s.simulate(ctx, x, 0, 0, x.bundled())
		return t.End, err
	}
	scatter, err := s.simulate(ctx, x, 1, 0, false)
	if err != nil {
		return 0, err
	}
	gather, err := s.simulate(ctx, x, 0, 1, false)
	steps := float64(x.members() - 1)
	return steps*(scatter.StepsEnd+gather.StepsEnd) + gather.End - gather.StepsEnd, err
}

// bundled reports whether the streams of a rack's workers to one place are simulated as one: there would be too many.
func (x experiment) bundled() bool { return x.algorithm == atpRacks || x.cluster.workers() > 256 }

// all runs experiments, so many at once.
func (s *simulator) all(ctx context.Context, list []experiment, done func()) ([]cell, error) {
	cells := make([]cell, len(list))
	errs := make([]error, len(list))
	slots := make(chan struct{}, runtime.NumCPU())
	var group sync.WaitGroup
	for i, x := range list {
		group.Add(1)
		slots <- struct{}{}
		go func() {
			defer func() { <-slots; group.Done(); done() }()
			if errs[i] = ctx.Err(); errs[i] != nil {
				return
			}
			seconds, err := s.seconds(ctx, x)
			errs[i] = err
			cells[i] = cell{x.cluster.workers(), x.array.Name, x.algorithm, x.percent, seconds, s.c.closed(x, s.alpha)}
		}()
	}
	group.Wait()
	return cells, errors.Join(errs...)
}

// cell is one number of the tables.
type cell struct {
	Workers   int     `json:"workers"`
	Array     string  `json:"array"`
	Algorithm string  `json:"algorithm"`
	Percent   int     `json:"percent"`
	Seconds   float64 `json:"seconds"`
	Closed    float64 `json:"closed_seconds"`
}

// root returns the folder with go.mod, from this folder or above.
func root() (string, error) {
	dir, err := os.Getwd()
	for err == nil {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("run this in a checkout of Tributary")
		}
		dir = filepath.Dir(dir)
	}
	return "", err
}
