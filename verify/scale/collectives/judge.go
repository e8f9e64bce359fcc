package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// judgement compares our ring with one of SMPI's on the same network.
type judgement struct {
	judged
	Algorithm string  `json:"algorithm"` // of smpi/allreduce
	Theirs    float64 `json:"their_seconds"`
	Ours      float64 `json:"our_seconds"`
}

// The rings of SMPI.
var judges = []string{"lr", "ompi_ring_segmented"}

// judge runs SMPI beside our ring.
func (s *simulator) judge(ctx context.Context, source, dir string) (list []judgement, err error) {
	program := filepath.Join(dir, "allreduce")
	if out, err := exec.CommandContext(ctx, "smpicc", "-O2", "-Wall", "-Wextra", "-Werror", "-o", program, filepath.Join(source, "allreduce.c")).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("smpicc: %w: %s", err, out)
	}
	for _, j := range s.c.Judge {
		// SMPI has no racks. Two racks of half the workers are the same star.
		ours, err := s.seconds(ctx, experiment{cluster{2, j.Workers / 2, s.c.Clusters[0].Card}, array{"judge", j.Bytes}, rina, 0})
		if err != nil {
			return nil, err
		}
		for _, algorithm := range judges {
			theirs, err := s.smpi(ctx, program, dir, algorithm, j)
			if err != nil {
				return nil, err
			}
			list = append(list, judgement{j, algorithm, theirs, ours})
		}
	}
	return list, nil
}

// smpi returns SMPI's time of an all-reduce. Its links have the fixed cost of a step as latency.
func (s *simulator) smpi(ctx context.Context, program, dir, algorithm string, j judged) (seconds float64, err error) {
	platform, hosts := filepath.Join(dir, "platform.xml"), filepath.Join(dir, "hosts")
	text := fmt.Sprintf(`<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <cluster id="star" prefix="worker" suffix="" radical="0-%d" speed="1Gf" bw="%.12gBps" lat="%.12gs" sharing_policy="SPLITDUPLEX"/>
</platform>
`, j.Workers-1, s.c.rate(), s.c.delay()+s.alpha/2)
	if err := os.WriteFile(platform, []byte(text), 0o666); err != nil {
		return 0, err
	}
	var names strings.Builder
	for i := range j.Workers {
		fmt.Fprintf(&names, "worker%d\n", i)
	}
	if err := os.WriteFile(hosts, []byte(names.String()), 0o666); err != nil {
		return 0, err
	}
	command := exec.CommandContext(ctx, "smpirun", "-np", fmt.Sprint(j.Workers), "-platform", platform, "-hostfile", hosts,
		"--cfg=smpi/allreduce:"+algorithm, "--cfg=network/model:CM02", "--cfg=network/crosstraffic:no",
		"--cfg=network/TCP-gamma:0", "--cfg=network/weight-S:0", "--cfg=smpi/simulate-computation:no",
		"--log=root.thresh:warning", program, fmt.Sprint(int(j.Bytes)/4))
	command.Dir = dir
	var stderr strings.Builder
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		return 0, fmt.Errorf("smpirun, %s: %w: %s", algorithm, err, stderr.String())
	}
	var wrong int
	if _, err := fmt.Sscan(string(out), &seconds, &wrong); err != nil || wrong != 0 {
		return 0, fmt.Errorf("smpirun, %s: %q has %d wrong elements: %w", algorithm, out, wrong, err)
	}
	return seconds, nil
}
