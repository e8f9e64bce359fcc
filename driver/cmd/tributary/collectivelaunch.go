package main

// The launcher of tributary collective: its ranks are processes of this program.

import (
	"bufio"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"tributary/driver"
	"tributary/driver/collective"
	"tributary/driver/daemon"
	"tributary/driver/transport/scratch"
	"tributary/driver/wire"
)

// rankStopTime is how long a rank may take to end after the launcher has asked it to.
const rankStopTime = 5 * time.Second

// A rankError is why a rank failed, with its exit status.
type rankError struct {
	status int
	text   string
}

func (e *rankError) Error() string { return e.text }

// launch starts all ranks, and prints the rows of rank 0. No process is left when it returns.
func (s *setup) launch(ctx context.Context, t *table) (err error) {
	folder, err := scratch.New()
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, folder.Remove()) }()
	if err := s.describe(folder); err != nil {
		return err
	}
	stop, err := s.shareCards(ctx, folder)
	if err != nil {
		return err
	}
	defer stop()
	return s.launchRanks(ctx, folder, t)
}

// describe writes the files that all ranks read.
func (s *setup) describe(folder *scratch.Folder) error {
	var members strings.Builder
	for r := range s.group.Size() {
		fmt.Fprintf(&members, "unix:%s\n", folder.Path(strconv.Itoa(r)))
	}
	return errors.Join(
		os.WriteFile(folder.Path("members"), []byte(members.String()), 0o600),
		os.WriteFile(folder.Path("token"), []byte(rand.Text()+"\n"), 0o600))
}

// shareCards shares the cards of jobs with the ranks, except those that a daemon shares already. Then
// the jobs have the cards' names for ranks.
func (s *setup) shareCards(ctx context.Context, folder *scratch.Folder) (stop func(), err error) {
	opened := map[string]daemon.Card{}
	closeAll := func() {
		for _, c := range opened {
			_ = c.Close()
		}
	}
	dir := folder.Path("card") // its lock is not that of the folder, which this process holds
	path := filepath.Join(dir, "s")
	shared := map[string]string{} // names for ranks
	for i, j := range s.jobs {
		if daemon.CheckCard(j.card) != nil {
			continue
		}
		if name := shared[j.card]; name != "" && !inSoftware(j.card) {
			j.card = name
			continue
		}
		card, err := driver.Open(ctx, j.card, driver.WithWorkers(j.workers()), driver.WithFormat(wire.Format(s.format)),
			driver.WithTimeout(s.timeout), driver.WithWarnings(s.warn))
		if err != nil {
			closeAll()
			return nil, err
		}
		name := fmt.Sprintf("card%d", i)
		opened[name] = card
		shared[j.card] = "serve:unix:" + path + "#" + name
		j.card = shared[j.card]
	}
	if len(opened) == 0 {
		return func() {}, nil
	}
	err = os.Mkdir(dir, 0o700)
	var listener net.Listener
	if err == nil {
		listener, err = daemon.Listen(ctx, "unix:"+path)
	}
	if err != nil {
		closeAll()
		return nil, err
	}
	until, end := context.WithCancel(context.WithoutCancel(ctx))
	over := make(chan struct{})
	go func() {
		defer close(over)
		_ = daemon.New(opened, daemon.Options{}).Serve(until, listener, 0) // the ranks' errors are the reason
	}()
	return func() {
		end()
		<-over
		closeAll()
	}, nil
}

// rankProcesses are the ranks.
type rankProcesses struct {
	*setup
	table *table
	stop  context.CancelFunc
	joins map[int]string // tickets, by rank
	wg    sync.WaitGroup

	mu     sync.Mutex
	err    *rankError
	killed bool // err is of a rank that a signal ended
	warned []string
}

// launchRanks starts the ranks and waits for their end. The first rank of each job has the ticket for the
// others.
func (s *setup) launchRanks(ctx context.Context, folder *scratch.Folder, t *table) error {
	running, stop := context.WithCancel(ctx)
	defer stop()
	all := &rankProcesses{setup: s, table: t, stop: stop, joins: map[int]string{}}
	defer all.wg.Wait()
	if err := all.startAll(running, folder); err != nil {
		stop()
		return err
	}
	all.wg.Wait()
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case all.err != nil:
		return all.err
	}
	return nil
}

// startAll starts the ranks that create jobs, then all others.
func (r *rankProcesses) startAll(ctx context.Context, folder *scratch.Folder) error {
	tickets := map[*cardJob]chan string{}
	started := map[int]bool{}
	for _, j := range r.jobs {
		if r.algorithm != collective.Card {
			info, err := r.cardInfo(ctx, j.card)
			if err != nil {
				return err
			}
			if !j.seats(info) {
				continue
			}
		}
		tickets[j], started[j.ranks[0]] = make(chan string, 1), true
		if err := r.start(ctx, folder, j.ranks[0], tickets[j]); err != nil {
			return err
		}
	}
	for j, ticket := range tickets {
		select {
		case text := <-ticket:
			for _, rank := range j.ranks[1:] {
				r.joins[rank] = text
			}
		case <-ctx.Done():
			return nil // for the reason that is known
		}
	}
	for rank := 0; rank < r.group.Size() && ctx.Err() == nil; rank++ {
		if started[rank] {
			continue
		}
		if err := r.start(ctx, folder, rank, nil); err != nil {
			return err
		}
	}
	return nil
}

// args returns the command line of a rank.
func (r *rankProcesses) args(folder *scratch.Folder, rank int) []string {
	f := r.collectiveFlags
	args := []string{"collective", "-report", "-algorithm", f.algorithm, "-operation", f.operation, "-format", f.format.String(),
		"-rank", strconv.Itoa(rank), "-members", folder.Path("members"), "-token-file", folder.Path("token"), "-sizes", f.sizes, "-elements", f.elements,
		"-root", strconv.Itoa(f.root), "-iterations", f.iterations.String(), "-warmup", strconv.Itoa(f.warmup), "-check=" + strconv.FormatBool(f.check),
		"-wait", f.wait.String(), "-silence", f.silence.String(), "-timeout", f.timeout.String()}
	for _, j := range r.jobs {
		args = append(args, "-card", j.card)
		if j.rack != "" {
			args = append(args, "-racks", strconv.Itoa(len(j.ranks)))
		}
	}
	if r.machines > 0 {
		args = append(args, "-machines", r.machines.String())
	}
	if ticket := r.joins[rank]; ticket != "" {
		args = append(args, "-join", ticket)
	}
	return args
}

// start starts a rank. It ends with ctx, and with this process. ticket gets what it prints as such.
func (r *rankProcesses) start(ctx context.Context, folder *scratch.Folder, rank int, ticket chan<- string) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	p := exec.CommandContext(ctx, program, r.args(folder, rank)...)
	p.Cancel = func() error { return p.Process.Signal(syscall.SIGTERM) }
	p.WaitDelay = rankStopTime
	out, err := p.StdoutPipe()
	if err != nil {
		return err
	}
	errs, err := p.StderrPipe()
	if err != nil {
		return err
	}
	if _, err := p.StdinPipe(); err != nil { // the rank ends with it
		return err
	}
	if err := p.Start(); err != nil {
		return fmt.Errorf("rank %d: %w", rank, err)
	}
	var said string
	var reading sync.WaitGroup
	reading.Go(func() {
		r.read(out, rank, ticket)
		_, _ = io.Copy(io.Discard, out)
	})
	reading.Go(func() { said = r.listen(errs) })
	r.wg.Go(func() {
		reading.Wait()
		if err := p.Wait(); err != nil {
			r.failed(ctx, rank, p.ProcessState, cmp.Or(said, err.Error()))
		}
	})
	return nil
}

// read takes a rank's ticket, and the rows of rank 0.
func (r *rankProcesses) read(out io.Reader, rank int, ticket chan<- string) {
	for d := json.NewDecoder(out); ; {
		var line struct {
			Ticket string
			collectiveRow
		}
		if err := d.Decode(&line); err != nil {
			return // its exit status says more
		}
		if line.Ticket != "" {
			ticket <- line.Ticket
			continue
		}
		if rank > 0 {
			continue
		}
		if err := r.table.add(line.collectiveRow); err != nil {
			r.fail(&rankError{statusFailed, err.Error()}, false)
			return
		}
	}
}

// listen prints the warnings of a rank, each text once for all, and returns its error.
func (r *rankProcesses) listen(errs io.Reader) (said string) {
	const name = "tributary collective: "
	lines := bufio.NewScanner(errs)
	for lines.Scan() {
		text, ok := strings.CutPrefix(lines.Text(), name)
		warning, warns := strings.CutPrefix(text, "warning: ")
		switch {
		case warns:
			r.warnOnce(warning)
		case ok:
			said = text
		case said == "":
			said = lines.Text() // the first line of a crash
		}
	}
	_, _ = io.Copy(io.Discard, errs)
	return said
}

func (r *rankProcesses) warnOnce(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !slices.Contains(r.warned, text) {
		r.warned = append(r.warned, text)
		r.warn(text)
	}
}

// failed notes the end of a rank. Signals after the end of ctx are the launcher's.
func (r *rankProcesses) failed(ctx context.Context, rank int, state *os.ProcessState, said string) {
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() && ctx.Err() == nil {
		r.fail(&rankError{statusFailed, fmt.Sprintf("rank %d (process %d) was ended by a signal: %s", rank, state.Pid(), status.Signal())}, true)
		return
	}
	r.fail(&rankError{state.ExitCode(), said}, false)
}

// fail keeps the error of the first rank that failed, or of the first that a signal ended, and lets the
// others end: most know the reason, but not one that waits for a rank that never started.
func (r *rankProcesses) fail(err *rankError, killed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil || killed && !r.killed {
		r.err, r.killed = err, killed
	}
	time.AfterFunc(graceOfRanks, r.stop)
}

// graceOfRanks lets ranks report what they know before the launcher ends them.
const graceOfRanks = time.Second
