package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"tributary/driver"
	"tributary/driver/element"
	"tributary/driver/npy"
	"tributary/driver/reduction"
	"tributary/driver/shell"
	"tributary/driver/transport"
	"tributary/driver/wire"
)

// traceFlags is the command line of tributary trace.
type traceFlags struct {
	cardFlags
	jobFlags
	out    string
	format formatFlag
	json   bool
}

func newTrace() *cobra.Command {
	f := &traceFlags{}
	cmd := &cobra.Command{
		Use:   "trace DIR [W0.npy W1.npy ...]",
		Short: "Record a reduction as a waveform",
		Long: `Sums arrays through the virtual card built in DIR, as tributary reduce does, and
writes a folder with
  card.fst   the waveform of every signal of the card, from its reset on
  card.gtkw  a view for GTKWave
  card.sucl  a view for Surfer
  sum.npy    the sum (sum.npz of archives)
The views show the clock, the link, each port's stream in, commits, the reading
of slots, the result cache, the stream of results, and what goes into each lane
and comes out. Without files, trace sums small integers from every port, enough
to use every slot once.

Build the card first: make -C DIR/sim trace

The folder appears whole or not at all. It replaces an earlier trace's folder that
has no other files.`,
		Example: `  tributary trace tributary_l16_w4_fp32_tree
  tributary trace tributary_l16_w4_fp32_tree -o step1 w0.npy w1.npy w2.npy w3.npy
  gtkwave step1/card.fst step1/card.gtkw
  surfer --command-file step1/card.sucl step1/card.fst`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("DIR, the card's folder, is missing")
			}
			return f.run(cmd.Context(), args[0], args[1:], cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	cmd.Flags().StringVarP(&f.out, "out", "o", "trace", "write into the new `FOLDER`")
	cmd.Flags().Var(&f.format, "format", "read files of this `FORMAT`: bf16 (uint16), fp8e4m3 or fp8e5m2 (uint8) (default their type)")
	f.jobFlags.add(cmd)
	f.addTimeout(cmd)
	f.addRecord(cmd)
	cmd.Flags().BoolVar(&f.json, "json", false, "print the outcome as JSON")
	return cmd
}

// The names of the files of a trace.
const (
	waveFile    = "card.fst"
	gtkwaveFile = "card.gtkw"
	surferFile  = "card.sucl"
	sumFile     = "sum" // and .npy, or .npz
)

func (f *traceFlags) check(paths []string) error {
	if err := f.cardFlags.check(); err != nil {
		return err
	}
	if err := f.jobFlags.check(len(paths)); err != nil {
		return err
	}
	if len(paths) == 0 && f.format != 0 {
		return usagef("-format: it needs input files")
	}
	if err := checkRecord(f.record, f.out, paths); err != nil {
		return err
	}
	return checkFolder(f.out)
}

// checkFolder refuses a folder that holds, or may hold, anything but an earlier trace.
func checkFolder(out string) error {
	if parent, err := os.Stat(filepath.Dir(out)); err != nil || !parent.IsDir() {
		return fmt.Errorf("-o %s: there is no folder %s", out, filepath.Dir(out))
	}
	entries, err := os.ReadDir(out)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(entries) == 0 {
		return nil
	}
	if err != nil {
		return fmt.Errorf("-o %s: it is not a folder", out)
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
		if !slices.Contains([]string{waveFile, gtkwaveFile, surferFile, sumFile + ".npy", sumFile + ".npz"}, e.Name()) {
			return fmt.Errorf("-o %s: the folder holds %s, which is not part of a trace; name another folder", out, e.Name())
		}
	}
	if !slices.Contains(names, waveFile) {
		return fmt.Errorf("-o %s: the folder holds no earlier trace; name another folder", out)
	}
	return nil
}

func (f *traceFlags) run(ctx context.Context, dir string, paths []string, out, errs io.Writer) error {
	if err := f.check(paths); err != nil {
		return err
	}
	folder, err := openFolder(dir)
	if err != nil {
		return &driver.NoCardError{Name: "sim:" + dir, Err: err}
	}
	arrays, err := f.arrays(ctx, folder, paths)
	if err != nil {
		return err
	}
	f.out = filepath.Clean(f.out)
	fresh := filepath.Join(filepath.Dir(f.out), fmt.Sprintf(".%s.new%d", filepath.Base(f.out), os.Getpid()))
	if err := os.Mkdir(fresh, 0o777); err != nil {
		return asFlags(reduction.Unwritable(f.out, f.out, err))
	}
	defer os.RemoveAll(fresh)
	done, err := f.fill(ctx, folder, fresh, arrays, len(paths) == 0, errs)
	if err != nil {
		return err
	}
	if err := replace(f.out, fresh); err != nil {
		return err
	}
	report := f.report(done)
	if f.json {
		return printJSON(out, report)
	}
	return report.print(out)
}

// arrays returns the arrays of the files, or made-up ones.
func (f *traceFlags) arrays(ctx context.Context, folder cardFolder, paths []string) ([]reduction.Arrays, error) {
	if len(paths) == 0 {
		return f.madeUp(folder), nil
	}
	return reduction.ReadFiles(ctx, paths)
}

// options returns the reduction's options, as set by the flags.
func (f *traceFlags) options(folder cardFolder, madeUp bool) reduction.Options {
	o := reduction.Options{
		Format: wire.Format(f.format), Stats: true, Timeout: f.timeout,
		Ports: f.ports, Chunk: int(f.chunk), Window: int(f.window),
	}
	if madeUp {
		o.Format = folder.format()
	}
	return o
}

// madeUp returns an array for each port: small whole numbers, exact in every format, and so are
// their sums.
func (f *traceFlags) madeUp(folder cardFolder) []reduction.Arrays {
	at := folder.Constants
	workers, chunk, window := len(f.ports), int(f.chunk), int(f.window)
	if workers == 0 {
		workers = int(at["PORTS"])
	}
	if chunk == 0 {
		chunk = int(at["CHUNK"])
	}
	if window == 0 {
		window = int(at["WINDOW"])
	}
	format := folder.format()
	elements := 2 * window * chunk // a job has twice as many slots as its window
	all := make([]reduction.Arrays, workers)
	for w := range all {
		data := make([]byte, 0, elements*element.Size(format)+4)
		for i := range elements {
			data = binary.LittleEndian.AppendUint32(data, element.Round(format, float64((w+i)%4+1)))
			data = data[:(i+1)*element.Size(format)]
		}
		all[w] = reduction.Array(npy.Array{Shape: []int{elements}, Type: reduction.TypeOf(format), Data: data})
	}
	return all
}

// fill runs the reduction and writes all files.
func (f *traceFlags) fill(ctx context.Context, folder cardFolder, into string, arrays []reduction.Arrays, madeUp bool, errs io.Writer) (*reduction.Outcome, error) {
	flags, wave := f.cardFlags, filepath.Join(into, waveFile)
	flags.card = "sim:" + folder.dir
	flags.dial = func(ctx context.Context) (transport.Conn, error) { return transport.OpenTraced(ctx, folder.dir, wave) }
	c := &carriedOut{cardFlags: &flags, command: "tributary trace", errs: errs}
	done, err := c.reduce(ctx, arrays, f.options(folder, madeUp))
	if err != nil {
		return nil, err
	}
	if err := reduction.WriteFile(ctx, filepath.Join(into, sumName(done)), done.Sum); err != nil {
		return nil, asFlags(err)
	}
	return done, writeViews(folder, into, done.Report.Stats)
}

// writeViews writes the files for GTKWave and Surfer.
func writeViews(folder cardFolder, into string, stats *reduction.Stats) error {
	groups, err := folder.view()
	if err != nil {
		return err
	}
	show := stretch{stats.Began, stats.Cycles}
	for name, text := range map[string]string{gtkwaveFile: gtkwave(waveFile, groups, show), surferFile: surfer(groups)} {
		if err := os.WriteFile(filepath.Join(into, name), []byte(text), 0o666); err != nil {
			return err
		}
	}
	return nil
}

func sumName(done *reduction.Outcome) string {
	if done.Sum.Archive {
		return sumFile + ".npz"
	}
	return sumFile + ".npy"
}

// replace renames the folder fresh to out, and removes an earlier trace there.
func replace(out, fresh string) error {
	if err := checkFolder(out); err != nil {
		return err // it was filled in the meantime
	}
	if err := os.RemoveAll(out); err != nil {
		return err
	}
	return os.Rename(fresh, out)
}

// traceReport is the report of tributary trace.
type traceReport struct {
	Folder    string            `json:"folder"`
	Waveform  string            `json:"waveform"` // files
	GTKWave   string            `json:"gtkwave"`
	Surfer    string            `json:"surfer"`
	Sum       string            `json:"sum"`
	Began     uint64            `json:"began"` // the card's clock when the reduction began
	Reduction *reduction.Report `json:"reduction"`
}

func (f *traceFlags) report(done *reduction.Outcome) traceReport {
	in := func(name string) string { return filepath.Join(f.out, name) }
	r := done.Report
	r.Output = in(sumName(done))
	return traceReport{f.out, in(waveFile), in(gtkwaveFile), in(surferFile), r.Output, r.Stats.Began, r}
}

func (t traceReport) print(out io.Writer) error {
	s := t.Reduction.Stats
	_, err := fmt.Fprintln(out, strings.Join([]string{
		fmt.Sprintf("%s: the waveform of %d workers' %d elements, %d chunks of %d beats, in cycles %d to %d",
			t.Waveform, t.Reduction.Workers, t.Reduction.Elements, s.Chunks, s.Chunk/s.Lanes, t.Began, t.Began+s.Cycles),
		fmt.Sprintf("  gtkwave %s %s", shell.Quote(t.Waveform), shell.Quote(t.GTKWave)),
		fmt.Sprintf("  surfer --command-file %s %s", shell.Quote(t.Surfer), shell.Quote(t.Waveform)),
	}, "\n"))
	return err
}
