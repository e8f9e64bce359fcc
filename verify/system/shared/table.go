package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
)

// table is the result of a campaign.
type table struct {
	Seed     uint64                    `json:"seed"`
	Rounds   int                       `json:"rounds"`
	Seconds  float64                   `json:"seconds"`
	CPU      float64                   `json:"cpu_seconds"` // of the processes that have ended
	Kills    map[string]map[phase]int  `json:"kills"`       // by role
	Pauses   int                       `json:"pauses"`
	Sums     int                       `json:"sums"`
	Chunks   int                       `json:"chunks"`
	Partial  int                       `json:"partial_chunks"`
	Outages  int                       `json:"outages"`
	Returned int                       `json:"returned"`
	Lives    map[string]map[string]int `json:"lives"` // by the kind of job and their end
	Daemon   growth                    `json:"daemon"`
}

func (t *table) note(role string, at phase) {
	if t.Kills == nil {
		t.Kills = map[string]map[phase]int{}
	}
	if t.Kills[role] == nil {
		t.Kills[role] = map[phase]int{}
	}
	t.Kills[role][at]++
}

// end counts the end of a life in a kind of job.
func (t *table) end(j *jobPlan, how string) {
	kind := map[bool]string{false: "complete sums", true: "partial sums"}[j.Partial]
	if j.Carry {
		kind += ", carries on"
	}
	if t.Lives == nil {
		t.Lives = map[string]map[string]int{}
	}
	if t.Lives[kind] == nil {
		t.Lives[kind] = map[string]int{}
	}
	t.Lives[kind][how]++
}

// killed returns the number of all kills.
func (t *table) killed() (n int) {
	for _, p := range phases {
		n += t.in(p)
	}
	return n
}

// in returns the number of kills in a phase.
func (t *table) in(p phase) (n int) {
	for _, of := range t.Kills {
		n += of[p]
	}
	return n
}

// print writes the table for people.
func (t *table) print(out io.Writer) {
	fmt.Fprintf(out, "%d kills in %d rounds from seed %d, %.0f s, %.0f s of processors; %d sums compared, every bit of %d chunks\n\n",
		t.killed(), t.Rounds, t.Seed, t.Seconds, t.CPU, t.Sums, t.Chunks)
	roles := []string{"member", "daemon", "card"}
	fmt.Fprintf(out, "%-26s", "killed")
	for _, role := range roles {
		fmt.Fprintf(out, " %8s", role)
	}
	fmt.Fprintln(out)
	for _, p := range phases {
		fmt.Fprintf(out, "%-26s", p)
		for _, role := range roles {
			fmt.Fprintf(out, " %8d", t.Kills[role][p])
		}
		fmt.Fprintln(out)
	}
	fmt.Fprintln(out)
	for _, kind := range slices.Sorted(maps.Keys(t.Lives)) {
		fmt.Fprintf(out, "members of jobs with %s:", kind)
		for _, how := range slices.Sorted(maps.Keys(t.Lives[kind])) {
			fmt.Fprintf(out, " %s %d", how, t.Lives[kind][how])
		}
		fmt.Fprintln(out)
	}
	fmt.Fprintf(out, "chunks that lacked a member: %d; members that returned and finished: %d; outages carried over: %d; pauses: %d\n",
		t.Partial, t.Returned, t.Outages, t.Pauses)
	d := t.Daemon
	fmt.Fprintf(out, "the daemon that lived through %d rounds: %d KiB, %d descriptors, %d goroutines; in the first %d rounds %d, %d, %d\n",
		d.Rounds, d.Last.KiB, d.Last.Descriptors, d.Last.Goroutines, warmUp, d.First.KiB, d.First.Descriptors, d.First.Goroutines)
}
