package config

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"tributary/driver/wire"
)

// Options is a valid command line.
type Options struct {
	Config
	Dir     string // the card's folder
	Force   bool   // replace edited files of a card in the folder
	DryRun  bool   // describe the card, write nothing
	JSON    bool   // describe the card in JSON
	Boards  bool   // print the table of boards and do nothing else; other flags are not checked
	Help    bool   // print the help and do nothing else; other flags are not checked
	Version bool   // print the version and do nothing else; other flags are not checked

	mac, ip string // as given
}

// flagDoc is one line of the help.
type flagDoc struct{ name, value, text string }

// Parse reads the arguments of hwgen, without the program's name. -flag and --flag are
// equivalent. The error joins all mistakes.
func Parse(args []string, known Known) (Options, error) {
	var o Options
	p := newParser(&o, known)
	rest := p.normalise(args)
	if err := p.flags.Parse(rest); err != nil {
		p.errs = append(p.errs, err)
	}
	if o.Help || o.Version || o.Boards {
		return o, nil
	}
	for _, a := range p.flags.Args() {
		p.errs = append(p.errs, fmt.Errorf("%s: unexpected; hwgen takes only flags", a))
	}
	given := map[string]bool{}
	p.flags.Visit(func(f *pflag.Flag) { given[f.Name] = true })
	p.errs = append(p.errs, o.onNetwork(known, given, p.bad)...)
	err := o.complete(known, given, p.bad)
	if given["o"] && o.Dir == "" {
		p.errs = append(p.errs, errors.New("-o: the folder's name is empty"))
	}
	if o.Dir == "" {
		o.Dir = o.Config.Dir()
	}
	return o, errors.Join(append(p.errs, err)...)
}

// parser reads a complete command line, even after errors.
type parser struct {
	flags *pflag.FlagSet
	docs  []flagDoc
	errs  []error
	bad   map[string]bool // flags with an unreadable value
}

func newParser(o *Options, known Known) *parser {
	p := &parser{flags: pflag.NewFlagSet("hwgen", pflag.ContinueOnError), bad: map[string]bool{}}
	p.flags.SetOutput(io.Discard)
	p.flags.SortFlags = false
	p.number(&o.Lanes, "lanes", "N", defaultLanes, "sum N elements of each worker a cycle: a power of two, 1 to 64")
	p.number(&o.Workers, "workers", "N", defaultWorkers, "give the card N ports, 1 to 64")
	p.text(&o.Format, "format", "FORMAT", known.Formats[0], "take contributions of this format: "+orList(known.Formats))
	p.text(&o.Result, "result", "FORMAT", "", "return sums of this format, which must hold every value of -format\n(default that of -format)")
	p.text(&o.Sum, "sum", "NAME", known.Sums[0], "add by this arithmetic: "+orList(known.Sums))
	p.flag(&o.Saturate, "saturate", "int32: limit sums to the largest or smallest number;\notherwise they wrap around")
	if len(known.DSP) > 0 {
		p.flag(&o.DSP, "dsp", "use DSP blocks in the lanes of sum "+orList(known.DSP))
	}
	p.number(&o.Chunk, "chunk", "ELEMENTS", defaultChunk,
		"allow at most this many elements in a packet, a multiple of the lanes;\nthe default grows where the workers need it for full rate")
	p.number(&o.Window, "window", "CHUNKS", defaultWindow, "allow this many chunks of a reduction in flight, a power of two;\nevery worker has memory for twice as many, which -dry-run prints")
	p.number(&o.Jobs, "jobs", "N", 1, "run N reductions at once, which share the card's chunks in flight:\na power of two, 1 to 16")
	p.text(&o.Shell, "shell", "NAME", known.Shells[0], "put this shell around the core: "+orList(known.Shells))
	p.text(&o.RegPort, "registers", "PORT", RegPortAXIL, "shell none: make the register port AXI4-Lite (axil),\nor a bus of one access at a time (bus)")
	p.number(&o.Link, "link", "BITS", defaultLink, "make the byte stream 8, 16, 32 or 64 bits wide,\nor each Ethernet port 8, 64 (its default) or 512;\na board sets its own width")
	p.number(&o.Ethernet, "ethernet", "N", 1, "shell udp or roce: give the card N Ethernet ports, 1 to 16;\nwith more than one, it is also a switch for other frames")
	p.flag(&o.Parent, "parent", "shell none or udp: add an up port, which makes the card part of a tree of cards")
	p.text(&o.mac, "mac", "ADDRESS", wire.MACText(wire.NetworkMAC), "shell udp or roce: the card's MAC address when it is new")
	p.text(&o.ip, "ip", "ADDRESS", wire.IPText(wire.NetworkIP), "shell udp or roce: the card's IPv4 address when it is new")
	p.number(&o.UDPPort, "udp-port", "N", int(wire.NetworkPort), "shell udp or roce: the card's UDP port when it is new")
	if len(known.Boards) > 0 {
		p.text(&o.Board, "board", "NAME", "", "add top, constraints and build script of a board: "+orList(known.boardNames())+";\nwithout -lanes, use the largest recorded card that fits and meets its clock")
		p.number(&o.Clock, "clock", "MHZ", 0, "run the card at this clock (default the board's)")
	}
	p.text(&o.Prefix, "prefix", "NAME", DefaultPrefix, "begin every module's name with NAME, so that two cards fit into one design")
	p.text(&o.Dir, "o", "DIR", "", "write the card to DIR (default named after its flags: tributary_l16_w4_fp32_tree)")
	p.flag(&o.Force, "force", "replace a card in DIR even if its files were edited")
	p.flag(&o.Bundle, "bundle", "write all modules into one file, agg.v")
	p.flag(&o.StripFormal, "strip-formal", "leave the properties for formal verification out of the Verilog")
	p.flag(&o.DryRun, "dry-run", "print memory, latency and throughput; write nothing")
	p.flag(&o.JSON, "json", "print the card's manifest on standard output")
	p.flag(&o.Boards, "list-boards", "print a table of boards and their largest recorded cards")
	p.flag(&o.Version, "version", "print the version")
	p.flag(&o.Help, "help", "print this text (also -h)")
	p.flags.BoolVar(&o.Help, "h", false, "")
	return p
}

func (p *parser) text(to *string, name, value, preset, doc string) {
	p.flags.StringVar(to, name, preset, doc)
	if preset != "" {
		doc += " (default " + preset + ")"
	}
	p.docs = append(p.docs, flagDoc{name, value, doc})
}

func (p *parser) number(to *int, name, value string, preset int, doc string) {
	*to = preset
	p.flags.Var(&number{to, name, p}, name, doc)
	if preset != 0 {
		doc += " (default " + strconv.Itoa(preset) + ")"
	}
	p.docs = append(p.docs, flagDoc{name, value, doc})
}

func (p *parser) flag(to *bool, name, doc string) {
	p.flags.BoolVar(to, name, false, doc)
	p.docs = append(p.docs, flagDoc{name, "", doc})
}

// number is the value of a flag for a whole number. It reports an unreadable value to its
// parser, so that parsing continues.
type number struct {
	to     *int
	name   string
	parser *parser
}

func (n *number) Set(s string) error {
	v, err := strconv.Atoi(s)
	if err != nil {
		n.parser.bad[n.name] = true
		n.parser.errs = append(n.parser.errs, fmt.Errorf("-%s %s: not a whole number", n.name, s))
		return nil
	}
	*n.to = v
	return nil
}

func (n *number) String() string { return strconv.Itoa(*n.to) }
func (n *number) Type() string   { return numberType }

const numberType = "number"

// normalise writes every flag as --flag or --flag=value, the only forms of a long flag in
// pflag. It reports and drops flags at which pflag would stop.
func (p *parser) normalise(args []string) []string {
	var out []string
	for i := 0; i < len(args); i++ {
		a := args[i]
		if a == "--" {
			return append(out, args[i:]...)
		}
		if !strings.HasPrefix(a, "-") || a == "-" {
			out = append(out, a)
			continue
		}
		name, value, hasValue := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(a, "-"), "-"), "=")
		f := p.flags.Lookup(name)
		switch {
		case f == nil:
			p.errs = append(p.errs, fmt.Errorf("-%s: no such flag", name))
			if i+1 < len(args) && !hasValue && !strings.HasPrefix(args[i+1], "-") {
				i++ // skips the flag's value
			}
		case f.NoOptDefVal != "" && hasValue:
			p.errs = append(p.errs, fmt.Errorf("-%s takes no value", name))
		case f.NoOptDefVal != "":
			out = append(out, "--"+name)
		case hasValue && (value != "" || f.Value.Type() != numberType):
			out = append(out, "--"+name+"="+value)
		case hasValue || i+1 == len(args):
			p.errs = append(p.errs, fmt.Errorf("-%s needs a value", name))
			p.bad[name] = true
		default:
			i++
			out = append(out, "--"+name+"="+args[i])
		}
	}
	return out
}
