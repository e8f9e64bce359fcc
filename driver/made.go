package driver

// Cards that are made to order in this process: the schemes model and cpu. Their names choose the
// card's geometry.

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"tributary/driver/element"
	"tributary/driver/transport"
	"tributary/driver/transport/pipe"
	"tributary/driver/wire"
)

// A card that is made to order has by default 16 lanes, as many ports as workers, else 4, and
// fp32 or the caller's format. Its chunk is the largest that fits into a frame, or on a network into
// Ethernet's usual MTU; the rest are hwgen's defaults. It takes no cycles, so its latency is 0.
const (
	madeLanes    = 16
	madePorts    = 4
	madeWindow   = 8
	madeLink     = 32
	madeEthernet = 64 // bits of the link on a network
)

// geometry is the configuration of a card that is made to order. It has the fields of
// model.Config and cpu.Config.
type geometry struct {
	Lanes    int
	Ports    int
	Chunk    int
	Window   int
	Jobs     int
	Format   wire.Format
	Result   wire.Format
	Sum      wire.Sum
	Saturate bool
	Shell    wire.Shell
	Link     int
	Latency  int
	Ethernet int
	Parent   bool
}

// openMade opens "SCHEME:", "SCHEME:DIR" and "SCHEME:OPTION=VALUE,...". build makes the
// card. A folder with an equals sign in its name needs a slash, as in ./a=b.
func openMade(scheme string, r transport.Request, build func(geometry) (server, error)) (transport.Conn, error) {
	if isToMeasure(r.Address) {
		g, err := madeToMeasure(scheme, r, wire.ShellStream)
		if err != nil {
			return nil, err
		}
		if g.Parent {
			return nil, fmt.Errorf("option parent: a card on a byte stream has no up port; run it on a network: tributary sim %s:%s", scheme, r.Address)
		}
		if g.Shell != wire.ShellStream {
			return nil, fmt.Errorf("option shell: a card under RoCEv2 needs Ethernet ports: tributary sim %s:%s -port PORT", scheme, r.Address)
		}
		card, err := build(g)
		if err != nil {
			return nil, err
		}
		return serve(card), nil
	}
	manifest, err := transport.ReadManifest(r.Address)
	if err != nil {
		return nil, err
	}
	if err := manifest.CheckLink(); err != nil {
		return nil, err
	}
	card, err := build(manifestGeometry(manifest))
	if err != nil {
		return nil, err
	}
	return &folderConn{serve(card), manifest}, nil
}

// isToMeasure reports whether a name has options, or nothing, after its scheme.
func isToMeasure(address string) bool {
	return address == "" || strings.Contains(address, "=") && !strings.Contains(address, "/")
}

// madeToMeasure returns the configuration of the card with a shell for the options in the name and
// the caller's needs.
func madeToMeasure(scheme string, r transport.Request, shell wire.Shell) (geometry, error) {
	g := geometry{
		Lanes:  madeLanes,
		Ports:  cmp.Or(r.Workers, madePorts),
		Window: madeWindow,
		Format: cmp.Or(r.Format, wire.FP32),
		Sum:    wire.SumTree,
		Shell:  shell,
		Link:   madeLink,
	}
	if shell == wire.ShellUDP {
		g.Link = madeEthernet
	}
	if r.Address != "" {
		for option := range strings.SplitSeq(r.Address, ",") {
			if err := g.set(scheme, option); err != nil {
				return g, err
			}
		}
	}
	g.Result = cmp.Or(g.Result, g.Format)
	if g.Chunk == 0 && shell == wire.ShellStream {
		g.Chunk = g.largestChunk()
	}
	return g, nil
}

// set sets one OPTION=VALUE of a name. Options have the names of hwgen's flags.
func (g *geometry) set(scheme, option string) error {
	name, value, _ := strings.Cut(option, "=")
	var err error
	switch name {
	case "lanes":
		g.Lanes, err = boundedNumber(value, wire.RegLanes)
	case "workers":
		g.Ports, err = boundedNumber(value, wire.RegPorts)
	case "chunk":
		g.Chunk, err = boundedNumber(value, wire.RegChunk)
	case "window":
		g.Window, err = boundedNumber(value, wire.RegWindow)
	case "jobs":
		g.Jobs, err = boundedNumber(value, wire.RegJobs)
	case "shell":
		g.Shell, err = shellNamed(value)
	case "saturate":
		g.Saturate, err = strconv.ParseBool(value)
	case "parent":
		g.Parent, err = strconv.ParseBool(value)
	case "format":
		g.Format, err = formatNamed(value)
	case "result":
		g.Result, err = formatNamed(value)
	case "sum":
		g.Sum, err = sumNamed(value)
	default:
		return fmt.Errorf("there is no option %q; the options are lanes, workers, format, result, sum, saturate, chunk, window, jobs, parent and shell, as in %s:format=bf16,sum=exact", name, scheme)
	}
	if number := (*strconv.NumError)(nil); errors.As(err, &number) {
		err = fmt.Errorf("%q is not a value for it", value)
	}
	if err != nil {
		return fmt.Errorf("option %s: %w", name, err)
	}
	return nil
}

// boundedNumber returns the number for the register at addr, within its bounds.
func boundedNumber(value string, addr uint32) (int, error) {
	n, err := strconv.Atoi(value)
	if err != nil {
		return 0, err
	}
	for _, b := range wire.Bounds {
		if b.Addr == addr && !b.Holds(uint64(n)) {
			return 0, fmt.Errorf("%d is not %s", n, b)
		}
	}
	return n, nil
}

func formatNamed(name string) (wire.Format, error) {
	var known []string
	for _, f := range wire.Formats {
		if f.Name == name {
			return f.Format, nil
		}
		known = append(known, f.Name)
	}
	return 0, fmt.Errorf("there is no format %q; the formats are %s", name, strings.Join(known, ", "))
}

func sumNamed(name string) (wire.Sum, error) {
	var known []string
	for _, s := range wire.Sums {
		if s.Name == name {
			return s.Sum, nil
		}
		known = append(known, s.Name)
	}
	return 0, fmt.Errorf("there is no sum %q; the sums are %s", name, strings.Join(known, ", "))
}

// shellNamed returns a shell that cards made to order can be given. The place where a card runs gives it
// stream or udp.
func shellNamed(name string) (wire.Shell, error) {
	if name != wire.ShellRoCE.String() {
		return 0, fmt.Errorf("it can only be %v", wire.ShellRoCE)
	}
	return wire.ShellRoCE, nil
}

// largestChunk returns the most elements, a multiple of the lanes, that fit into a data frame
// and into a result frame.
func (g *geometry) largestChunk() int {
	data, _ := wire.KindData.Info()
	result, _ := wire.KindResult.Info()
	// An unknown format has size 0 and is rejected later.
	in, out := max(1, element.Size(g.Format)), max(1, element.Size(g.Result))
	most := min((wire.MaxFrameBytes-data.FrameBytes(0))/in, (wire.MaxFrameBytes-result.FrameBytes(0))/out)
	return most / g.Lanes * g.Lanes
}

// manifestGeometry returns the geometry of a manifest's card.
func manifestGeometry(m *transport.Manifest) geometry {
	at := m.Constants
	return geometry{
		Lanes:    int(at["LANES"]),
		Ports:    int(at["PORTS"]),
		Chunk:    int(at["CHUNK"]),
		Window:   int(at["WINDOW"]),
		Jobs:     int(at["JOBS"]),
		Format:   wire.Format(at["FORMAT"]),
		Result:   wire.Format(at["FORMAT"] >> formatResultShift),
		Sum:      wire.Sum(at["SUM"]),
		Saturate: at["SUM"]>>sumSaturateShift&1 != 0,
		Shell:    wire.Shell(at["SHELL"]),
		Link:     int(at["LINK"]),
		Latency:  int(at["LATENCY"]),
		Parent:   at["SHELL"]&wire.ShellParentFlag != 0,
	}
}

// pipeBytes is the capacity of the pipe to a card in this process, in each direction.
const pipeBytes = 256 << 10

// server is a card in this process.
type server interface {
	Serve(io.ReadWriteCloser) error
}

// madeConn is the link to a card in this process.
type madeConn struct {
	*pipe.End
	card   server
	served chan struct{} // closed when err is set
	err    error         // the card's error when its link ended
}

// folderConn is the link to a folder's card in this process. Open compares its configuration hash
// with the manifest's.
type folderConn struct {
	*madeConn
	*transport.Manifest
}

// serve starts a card and returns the link to it.
func serve(card server) *madeConn {
	host, end := pipe.New(pipeBytes)
	c := &madeConn{End: host, card: card, served: make(chan struct{})}
	go func() {
		defer close(c.served)
		c.err = card.Serve(end)
	}()
	return c
}

// Close ends the link and waits until the card has noticed.
func (c *madeConn) Close() error {
	c.End.Close()
	<-c.served
	return c.err
}
