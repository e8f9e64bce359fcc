package main

// The Verilog of a circuit, taken from a generated card.

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// source is the Verilog of a circuit in its own folder.
type source struct {
	dir         string   // of the files; tools run here
	files       []string // names in dir, the top's among them
	params      []param  // of the top
	hash        string   // of all that determines the row
	latency     int      // of the card at its ports, in cycles
	laneLatency int      // of its lanes
}

// param is a parameter with its value in Verilog's notation.
type param struct{ name, value string }

// comment matches comments and trailing blanks, which do not change the circuit.
var comment = regexp.MustCompile(`(?m)[ \t]*(/\*[^*]*\*/[ \t]*)?(//.*)?$`)

// prepare generates the circuit's card and copies the circuit's files to its folder. tools are
// the tools that read them.
func prepare(ctx context.Context, c circuit, tools []string) (source, error) {
	s := source{dir: folderOf(c)}
	if err := os.RemoveAll(s.dir); err != nil {
		return s, err
	}
	if err := os.MkdirAll(s.dir, 0o777); err != nil {
		return s, err
	}
	card := filepath.Join(s.dir, "card")
	if _, err := output(ctx, "", "bin/hwgen", append(slices.Clone(c.flags), "-o", card)...); err != nil {
		return s, err
	}
	if err := s.readLatencies(card); err != nil {
		return s, err
	}
	if err := s.collect(card, c.top); err != nil {
		return s, err
	}
	if err := s.readParams(card, c); err != nil {
		return s, err
	}
	return s, s.sum(c, tools)
}

// folderOf returns a circuit's folder.
func folderOf(c circuit) string {
	return filepath.Join(folder, regexp.MustCompile(`\W+`).ReplaceAllString(c.name, "_"))
}

func (s *source) readLatencies(card string) error {
	text, err := os.ReadFile(filepath.Join(card, "manifest.json"))
	if err != nil {
		return err
	}
	var manifest struct {
		Latency     int `json:"port_latency"`
		LaneLatency int `json:"lane_latency"`
	}
	if err := json.Unmarshal(text, &manifest); err != nil {
		return err
	}
	s.latency, s.laneLatency = manifest.Latency, manifest.LaneLatency
	if s.latency == 0 || s.laneLatency == 0 {
		return fmt.Errorf("%s: the manifest has no latencies", card)
	}
	return nil
}

// collect copies the top module and all modules below it from the card's folder. It leaves other
// leaves out, so that their changes do not change the circuit.
func (s *source) collect(card, top string) error {
	names, err := filepath.Glob(filepath.Join(card, "*.v*"))
	if err != nil {
		return err
	}
	texts := map[string][]byte{}
	for _, path := range names {
		if texts[filepath.Base(path)], err = os.ReadFile(path); err != nil {
			return err
		}
	}
	if texts[top+".v"] == nil {
		return fmt.Errorf("%s has no module %s", card, top)
	}
	word := regexp.MustCompile(`\w+(\.vh)?`)
	s.files = []string{top + ".v"}
	for i := 0; i < len(s.files); i++ {
		text := texts[s.files[i]]
		if err := os.WriteFile(filepath.Join(s.dir, s.files[i]), text, 0o666); err != nil {
			return err
		}
		for _, w := range word.FindAllString(string(comment.ReplaceAll(text, nil)), -1) {
			name := strings.TrimSuffix(w, ".vh") + ".v"
			if strings.HasSuffix(w, ".vh") {
				name = w
			}
			if texts[name] != nil && !slices.Contains(s.files, name) {
				s.files = append(s.files, name)
			}
		}
	}
	return nil
}

// readParams reads the parameters of the first instance of the top in its
// parent.
func (s *source) readParams(card string, c circuit) error {
	if c.parent == "" {
		return nil
	}
	text, err := os.ReadFile(filepath.Join(card, c.parent+".v"))
	if err != nil {
		return err
	}
	instance := regexp.MustCompile(`\s` + c.top + `\s*#\(\s*((?:\.\w+\s*\([^()]*\),?\s*)+)\)`).FindSubmatch(text)
	if instance == nil {
		return fmt.Errorf("%s has no %s with parameters in %s", card, c.top, c.parent)
	}
	for _, p := range regexp.MustCompile(`\.(\w+)\s*\(([^()]*)\)`).FindAllSubmatch(instance[1], -1) {
		s.params = append(s.params, param{string(p[1]), strings.TrimSpace(string(p[2]))})
	}
	return nil
}

// sum hashes everything that determines the circuit's row, except comments and trailing blanks.
func (s *source) sum(c circuit, tools []string) error {
	h := sha256.New()
	fmt.Fprintln(h, tools, c.top, s.params, recipe(c))
	if c.whole {
		text, err := os.ReadFile(outputProgram)
		if err != nil {
			return err
		}
		h.Write(text)
	}
	for _, name := range slices.Sorted(slices.Values(s.files)) {
		text, err := os.ReadFile(filepath.Join(s.dir, name))
		if err != nil {
			return err
		}
		fmt.Fprintln(h, name)
		for line := range bytes.Lines(text) {
			if line = comment.ReplaceAll(bytes.TrimSpace(line), nil); len(line) > 0 {
				fmt.Fprintf(h, "%s\n", line)
			}
		}
	}
	s.hash = hex.EncodeToString(h.Sum(nil)[:8])
	return nil
}

// output runs a program in a folder and returns its standard output. The error includes its
// standard error.
func output(ctx context.Context, dir, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, stderr.String())
	}
	return stdout.String(), nil
}
