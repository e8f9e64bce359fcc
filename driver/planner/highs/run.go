package highs

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Solver is an installed HiGHS.
type Solver struct {
	Program string
	Library string // its shared libraries; "" where the system finds them
	Version string

	Keep string // a folder for the LP files; "" keeps none
	runs int
}

// Missing means that HiGHS is not installed.
type Missing struct{ Tried []string }

func (e *Missing) Error() string {
	return "HiGHS is not installed (looked for " + strings.Join(e.Tried, ", ") + "); install it by `pip install highsbox`, or name the program with -highs"
}

// Error means that the solver gave no usable answer.
type Error struct{ Why string }

func (e *Error) Error() string { return "HiGHS: " + e.Why }

// patience is how long a solver may take to start, and to stop after its own time limit; tests shorten it.
var patience = 10 * time.Second

// Find returns the solver: the named program, or one on PATH, or that of the Python package highsbox
// of the python3 on PATH.
func Find(ctx context.Context, program string) (*Solver, error) {
	s := &Solver{Program: program}
	if absolute, err := filepath.Abs(program); err == nil && strings.ContainsRune(program, filepath.Separator) {
		s.Program = absolute
	}
	if program == "" {
		if found, err := exec.LookPath("highs"); err == nil {
			s.Program = found
		} else if box := highsbox(ctx); box != "" {
			s.Program = box
		} else {
			return nil, &Missing{[]string{"highs on PATH", "the package highsbox of python3 on PATH"}}
		}
	}
	if library := filepath.Join(filepath.Dir(filepath.Dir(s.Program)), "lib"); exists(filepath.Join(library, "libhighs.so")) {
		s.Library = library
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	out, err := s.command(ctx, "--version").Output()
	if err != nil {
		switch {
		case errors.Is(err, os.ErrNotExist), errors.Is(err, exec.ErrNotFound):
			return nil, &Missing{[]string{s.Program}}
		case errors.Is(context.Cause(ctx), context.DeadlineExceeded):
			return nil, &Error{fmt.Sprintf("%s --version did not end within %v, and was killed", s.Program, patience)}
		}
		return nil, &Error{fmt.Sprintf("%s --version: %v", s.Program, err)}
	}
	words := strings.Fields(string(out))
	for i, word := range words {
		if strings.EqualFold(word, "version") && i+1 < len(words) {
			s.Version = words[i+1]
		}
	}
	if s.Version == "" {
		return nil, &Error{fmt.Sprintf("%s --version prints %q, which is not HiGHS", s.Program, bytes.TrimSpace(out))}
	}
	return s, nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// highsbox returns the program of the Python package, or "".
func highsbox(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	out, err := exec.CommandContext(ctx, "python3", "-c", "import highsbox; print(highsbox.highs_bin_path())").Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

func (s *Solver) command(ctx context.Context, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, s.Program, args...)
	if s.Library != "" {
		c.Env = append(os.Environ(), "LD_LIBRARY_PATH="+s.Library)
	}
	c.WaitDelay = time.Second
	// A program that is a script has children of its own: the signal goes to all of them.
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
	return c
}

// tail keeps the end of what is written to it.
type tail struct{ bytes.Buffer }

// tailBytes is how much of it.
const tailBytes = 1 << 12

func (t *tail) Write(p []byte) (int, error) {
	n := len(p)
	p = p[max(0, n-tailBytes):]
	t.Next(t.Len() - min(t.Len(), tailBytes-len(p)))
	t.Buffer.Write(p)
	return n, nil
}

// Options bound a run.
type Options struct {
	Nodes int           // of branch and bound; 0: no limit
	Time  time.Duration // 0: no limit. A limit that strikes makes results depend on the machine.
	First bool          // of a mixed-integer program: any solution will do
	Seed  int
}

// Status is how a run ended.
type Status int

const (
	Optimal    Status = iota // with First: a solution
	Infeasible               // there is no solution: proved
	Stopped                  // by a limit, without a solution, or with one that may not be the best
	TimedOut                 // the same, by the limit on time
)

// Solution is the result of a run.
type Solution struct {
	Status Status
	Values []float64 // by variable; nil: none was found
	Cost   float64
}

// Value returns the value of a variable.
func (s *Solution) Value(v Var) float64 { return s.Values[v] }

// Solve runs the solver. Every solution is checked against the model before it is returned.
func (s *Solver) Solve(ctx context.Context, m *Model, o Options) (*Solution, error) {
	folder, err := os.MkdirTemp("", "tributary-plan-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	var text bytes.Buffer
	if err := m.Write(&text); err != nil {
		return nil, err
	}
	model, options, solution := filepath.Join(folder, "model.lp"), filepath.Join(folder, "options"), filepath.Join(folder, "solution")
	s.runs++
	if s.Keep != "" {
		if err := os.WriteFile(filepath.Join(s.Keep, fmt.Sprintf("%03d.lp", s.runs)), text.Bytes(), 0o644); err != nil {
			return nil, err
		}
	}
	if err := os.WriteFile(model, text.Bytes(), 0o644); err != nil {
		return nil, err
	}
	if err := os.WriteFile(options, []byte(o.file()), 0o644); err != nil {
		return nil, err
	}
	if o.Time > 0 {
		var cancel func()
		ctx, cancel = context.WithTimeout(ctx, o.Time+patience)
		defer cancel()
	}
	c := s.command(ctx, "--options_file", options, "--solution_file", solution, model)
	c.Dir = folder // it writes a log where it runs
	var log tail
	c.Stdout, c.Stderr = &log, &log
	err = c.Run()
	out := log.Bytes()
	if cause := context.Cause(ctx); cause != nil {
		if errors.Is(cause, context.DeadlineExceeded) {
			return nil, &Error{fmt.Sprintf("it did not stop %v after its time limit, and was killed", patience)}
		}
		return nil, cause
	}
	if err != nil {
		return nil, &Error{fmt.Sprintf("%v; its last line: %s", err, lastLine(out))}
	}
	data, err := os.ReadFile(solution)
	if err != nil {
		return nil, &Error{"it wrote no solution; its last line: " + lastLine(out)}
	}
	return m.parse(data)
}

// file is the options file of HiGHS. Without a gap of 0, HiGHS calls optimal what costs up to 0.01 % more.
func (o Options) file() string {
	text := fmt.Sprintf("threads = 1\nrandom_seed = %d\nmip_rel_gap = 0\nmip_abs_gap = 0\n", o.Seed)
	if o.Nodes > 0 {
		text += fmt.Sprintf("mip_max_nodes = %d\n", o.Nodes)
	}
	if o.Time > 0 {
		text += fmt.Sprintf("time_limit = %g\n", o.Time.Seconds())
	}
	if o.First {
		text += "mip_max_improving_sols = 1\n"
	}
	return text
}

func lastLine(out []byte) string {
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}

// parse reads a solution file.
func (m *Model) parse(data []byte) (*Solution, error) {
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, 1<<20)
	s := &Solution{Status: -1}
	place := map[string]int{}
	for i, v := range m.vars {
		place[v.name] = i
	}
	primal, found := false, 0
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		words := strings.Fields(line)
		switch {
		case line == "Model status" && lines.Scan():
			s.Status = status(strings.TrimSpace(lines.Text()))
		case line == "# Primal solution values" && lines.Scan():
			primal = strings.TrimSpace(lines.Text()) == "Feasible"
		case strings.HasPrefix(line, "# Rows"):
			primal = false
		case primal && len(words) == 2 && words[0] == "Objective":
			cost, err := strconv.ParseFloat(words[1], 64)
			if err != nil {
				return nil, &Error{fmt.Sprintf("its solution has the line %q, which is nonsense", line)}
			}
			s.Cost = cost
		case primal && len(words) == 2 && !strings.HasPrefix(line, "#"):
			at, known := place[words[0]]
			value, err := strconv.ParseFloat(words[1], 64)
			if !known || err != nil {
				return nil, &Error{fmt.Sprintf("its solution has the line %q, which is nonsense", line)}
			}
			if s.Values == nil {
				s.Values = make([]float64, len(m.vars))
			}
			s.Values[at] = value
			found++
		}
	}
	switch {
	case s.Status < 0:
		return nil, &Error{"its solution has no status"}
	case s.Values == nil && s.Status == Optimal, s.Values != nil && found != len(m.vars):
		return nil, &Error{fmt.Sprintf("its solution has values of %d variables instead of %d", found, len(m.vars))}
	case s.Values != nil:
		if why := m.violation(s.Values); why != "" {
			return nil, &Error{"its solution breaks " + why}
		}
		if cost := m.cost(s.Values); !(math.Abs(s.Cost-cost) <= 1e-5*(1+math.Abs(cost))) {
			return nil, &Error{fmt.Sprintf("its solution has the objective %g, and costs %g", s.Cost, cost)}
		}
	}
	return s, nil
}

// status translates HiGHS's name of a status.
func status(name string) Status {
	switch name {
	case "Optimal":
		return Optimal
	case "Infeasible", "Primal infeasible or unbounded":
		return Infeasible
	case "Time limit reached":
		return TimedOut
	case "Solution limit reached", "Iteration limit reached":
		return Stopped
	}
	return -1
}
