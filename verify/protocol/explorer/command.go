package explorer

import (
	"cmp"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// The exit statuses of the command.
const (
	ExitBroken = 1 // a property breaks
	ExitUsage  = 2
)

// Flags are the flags of a command.
type Flags = *flag.FlagSet

// choice is the parsed command line.
type choice struct {
	config, weaken string
	large, list    bool
	rest           []string // what is no flag
}

// Main is the main function of an explorer's command.
func (s *Suite[C]) Main() { os.Exit(s.Run(os.Args[1:], os.Stdout, os.Stderr)) }

// Run is the command; it returns the exit status.
func (s *Suite[C]) Run(args []string, out, errors io.Writer) int {
	want, err := s.parse(args, errors)
	switch {
	case err == flag.ErrHelp:
		return 0
	case err != nil:
		return ExitUsage
	case want.list:
		s.list(out)
		return 0
	}
	chosen, weak, err := s.choose(want)
	if len(want.rest) > 0 {
		err = fmt.Errorf("unexpected argument %q; see -help", want.rest[0])
	}
	if err != nil {
		fmt.Fprintf(errors, "%s: %v\n", s.Name, err)
		return ExitUsage
	}
	if s.Instead != nil {
		if done, err := s.Instead(out, weak.Rules); err != nil {
			fmt.Fprintf(errors, "%s: %v\n", s.Name, err)
			return ExitBroken
		} else if done {
			return 0
		}
	}
	return s.exploreAll(out, NewWatch(errors), chosen, weak)
}

// parse parses the command line, and reports unknown flags on errors.
func (s *Suite[C]) parse(args []string, errors io.Writer) (choice, error) {
	var want choice
	flags := flag.NewFlagSet(s.Name, flag.ContinueOnError)
	flags.SetOutput(errors)
	flags.Usage = func() {
		fmt.Fprint(errors, s.Usage)
		flags.PrintDefaults()
	}
	flags.StringVar(&want.config, "config", "", "explore only the configuration `NAME`")
	flags.StringVar(&want.weaken, "weaken", "", "drop or change the rule of the weakening `NAME`")
	flags.BoolVar(&want.large, "large", false, "include the large configurations")
	flags.BoolVar(&want.list, "list", false, "list configurations, properties and weakenings")
	if s.Flags != nil {
		s.Flags(flags)
	}
	err := flags.Parse(args)
	want.rest = flags.Args()
	return want, err
}

// choose finds the selected configurations and weakening. Without a selection of configurations, a
// weakening has its own.
func (s *Suite[C]) choose(want choice) ([]C, Weakening[C], error) {
	weak, known := s.Weakening(want.weaken)
	if !known && want.weaken != "" {
		return nil, weak, fmt.Errorf("unknown weakening %q; see -list", want.weaken)
	}
	var narrow func(C) bool
	if s.Narrow != nil {
		narrow = s.Narrow()
	}
	only := want.config
	if only == "" && narrow == nil {
		only = weak.Config
	}
	var chosen []C
	for _, c := range s.Configs {
		h := c.Heading()
		named := only == h.Name || only == "" && (!h.Large || want.large || narrow != nil)
		if named && (narrow == nil || narrow(c)) {
			chosen = append(chosen, c)
		}
	}
	switch {
	case len(chosen) > 0:
		return chosen, weak, nil
	case narrow != nil:
		return nil, weak, fmt.Errorf("no such configuration; see -list")
	}
	return nil, weak, fmt.Errorf("unknown configuration %q; see -list", only)
}

// exploreAll explores the configurations until a property breaks, and returns the exit status.
func (s *Suite[C]) exploreAll(out io.Writer, watch *Watch, chosen []C, weak Weakening[C]) int {
	line := s.Line
	if line == nil {
		line = func(name string, found Outcome, seconds float64) string {
			return fmt.Sprintf("%-20s %8d states, %5.1f s", name, found.States, seconds)
		}
	}
	for _, c := range chosen {
		began := time.Now()
		found, counterexample := s.Explore(c, weak, watch)
		if found.Broken != "" {
			fmt.Fprint(out, counterexample)
			return ExitBroken
		}
		verdict := "every property holds"
		if found.Cut {
			verdict = "no violation found up to the limit of states"
		}
		fmt.Fprintf(out, "%s: %s\n", line(c.Heading().Name, found, time.Since(began).Seconds()), verdict)
	}
	return 0
}

// list prints the configurations, properties and weakenings.
func (s *Suite[C]) list(out io.Writer) {
	width := cmp.Or(s.Column, 24)
	row := func(mark, name, text string) { fmt.Fprintf(out, " %s %-*s %s\n", mark, width, name, text) }
	fmt.Fprintln(out, "configurations (* large)")
	for _, c := range s.Configs {
		h, large := c.Heading(), " "
		if h.Large {
			large = "*"
		}
		row(large, h.Name, h.About)
	}
	fmt.Fprintln(out, "properties")
	for _, p := range s.Properties {
		row(" ", p.Name, p.Holds)
	}
	fmt.Fprintln(out, "weakenings")
	for _, w := range s.Weakenings {
		breaks := w.Breaks
		if w.Harmless != "" {
			breaks = "nothing"
		}
		row(" ", w.Name, fmt.Sprintf("%s (breaks: %s)", w.Means, breaks))
	}
}

// counterexample formats the path to a broken property.
func (s *Suite[C]) counterexample(c C, weak Weakening[C], found Outcome) string {
	h := c.Heading()
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s%s\n", h.Name, h.About, h.Note)
	if weak.Name != "" {
		fmt.Fprintf(&b, "weakened: %s\n", weak.Means)
	}
	fmt.Fprintln(&b)
	for i, line := range found.Path {
		fmt.Fprintf(&b, "%3d  %s\n", i+1, line)
	}
	fmt.Fprintf(&b, "\nviolated: %s\n     %s\n", found.Broken, found.How)
	property, _ := find(s.Properties, func(p Property) bool { return p.Name == found.Broken })
	fmt.Fprintf(&b, "property: %s\n", property.Holds)
	return b.String()
}
