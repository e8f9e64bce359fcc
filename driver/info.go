package driver

// A card's description of itself: its identification block and its counters.

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"tributary/driver/element"
	"tributary/driver/frame"
	"tributary/driver/wire"
)

// Info is a card's identification block.
type Info struct {
	Name       string      // the name given to Open
	Version    int         // protocol version
	ConfigHash uint64      // over the fields below, as defined in REGISTERS.md
	Lanes      int         // elements in a beat
	Ports      int         // most members of a job
	Format     wire.Format // of the contributions
	Result     wire.Format // of the results
	Sum        wire.Sum
	Saturate   bool // int32 sums saturate; else they wrap around
	Shell      wire.Shell
	Parent     bool // the card has an up port, for a parent
	Chunk      int  // most elements in a chunk
	Window     int  // most chunks in a job's window; all jobs share twice as many slots
	Jobs       int  // most jobs at once: min(JOBS, WINDOW), as a window is a chunk or more
	Packet     int  // most bytes of a packet on the way to a card on a network; 0 means no limit
	Link       int  // bits the link moves in a cycle
	Latency    int  // cycles from a chunk's last beat in to its first beat out of the core
	Arrays     bool // takes arrays as they are (cpu, also behind a daemon): its link carries no data
}

// Counter is one of the card's counters (wire.Counters).
type Counter struct {
	Name  string
	Value uint32 // wraps around
	Doc   string
}

// LinkStats counts what this host received and sent since Open.
type LinkStats struct {
	Frames     uint64 // frames received whole
	Hunted     uint64 // bytes skipped in search of a sync word
	HeaderCRC  uint64 // headers whose CRC was wrong
	PayloadCRC uint64 // payloads whose CRC was wrong
	Refused    uint64 // headers with an invalid kind, version, format or length
	BytesIn    uint64 // bytes read from the link
	BytesOut   uint64 // bytes written to the link

	// Of cards on a network.
	Short       uint64 // datagrams with less bytes than any packet has
	DatagramCRC uint64 // datagrams whose CRC was wrong
	CEToCard    uint64 // results of which a contribution met congestion on its way to the card
	CEFromCard  uint64 // packets that met congestion on their way from the card
}

func (s LinkStats) plus(o LinkStats) LinkStats {
	return LinkStats{
		Frames:      s.Frames + o.Frames,
		Hunted:      s.Hunted + o.Hunted,
		HeaderCRC:   s.HeaderCRC + o.HeaderCRC,
		PayloadCRC:  s.PayloadCRC + o.PayloadCRC,
		Refused:     s.Refused + o.Refused,
		BytesIn:     s.BytesIn + o.BytesIn,
		BytesOut:    s.BytesOut + o.BytesOut,
		Short:       s.Short + o.Short,
		DatagramCRC: s.DatagramCRC + o.DatagramCRC,
		CEToCard:    s.CEToCard + o.CEToCard,
		CEFromCard:  s.CEFromCard + o.CEFromCard,
	}
}

// identify reads the identification block and checks that this driver supports the card.
func (c *Card) identify(ctx context.Context, l *link) (Info, error) {
	magic, err := c.readOn(ctx, l, wire.RegMagic)
	if err != nil {
		return Info{}, err
	}
	if magic != wire.Magic {
		return Info{}, &NoCardError{Name: c.name, Reason: fmt.Sprintf("the other end is not a Tributary card: its MAGIC is %016x, not %016x", magic, wire.Magic)}
	}
	version, err := c.readOn(ctx, l, wire.RegVersion)
	if err != nil {
		return Info{}, err
	}
	if v := int(version & 0xff); v != wire.Version {
		return Info{}, &VersionError{Name: c.name, Got: v, Want: wire.Version}
	}
	var reads []frame.Header
	for _, r := range wire.Registers {
		if r.Ident || r.Addr == wire.RegConfigHash {
			reads = append(reads, readHeader(r.Addr))
		}
	}
	held, err := c.accessOn(ctx, l, reads...)
	if err != nil {
		return Info{}, err
	}
	values := map[uint32]uint64{}
	for i, r := range reads {
		values[r.VID] = held[i]
	}
	read := func(addr uint32) uint64 { return values[addr] }
	want := wire.ConfigHash(read)
	got := values[wire.RegConfigHash]
	if got != want {
		return Info{}, &HashError{Name: c.name, Got: got, Want: want, From: "its identification block"}
	}
	if l.expected != nil {
		if want, from := l.expected.ExpectedHash(); got != want {
			return Info{}, &HashError{Name: c.name, Got: got, Want: want, From: from}
		}
	}
	if err := checkIdent(c.name, read); err != nil {
		return Info{}, err
	}
	return newInfo(c.name, values).over(l)
}

// over returns the description of the card as it is to a host over a link.
func (i Info) over(l *link) (Info, error) {
	switch network := i.Shell.Network(); {
	case l.packets && !network:
		return Info{}, &NoCardError{Name: i.Name, Reason: fmt.Sprintf("the card has shell %s, not udp; generate it with -shell udp", i.Shell)}
	case l.packets:
		i.Packet = l.limits.Packet
	case network && i.Shell != wire.ShellRoCE: // no element of its jobs passes here
		i.Chunk = i.chunkInFrames()
	}
	return i, nil
}

// expecter is a transport.Conn that knows the card's configuration hash: a sim: card's folder
// has a manifest.
type expecter interface {
	ExpectedHash() (hash uint64, from string)
}

// Bit positions in FORMAT and SUM.
const (
	formatResultShift = 8
	sumSaturateShift  = 8
)

func newInfo(name string, values map[uint32]uint64) Info {
	at := func(addr uint32) int { return int(values[addr]) }
	return Info{
		Name:       name,
		Version:    wire.Version,
		ConfigHash: values[wire.RegConfigHash],
		Lanes:      at(wire.RegLanes),
		Ports:      at(wire.RegPorts),
		Format:     wire.Format(values[wire.RegFormat]),
		Result:     wire.Format(values[wire.RegFormat] >> formatResultShift),
		Sum:        wire.Sum(values[wire.RegSum]),
		Saturate:   values[wire.RegSum]>>sumSaturateShift&1 != 0,
		Shell:      wire.Shell(values[wire.RegShell]),
		Parent:     values[wire.RegShell]&wire.ShellParentFlag != 0,
		Chunk:      at(wire.RegChunk),
		Window:     at(wire.RegWindow),
		Jobs:       min(at(wire.RegJobs), at(wire.RegWindow)),
		Link:       at(wire.RegLink),
		Latency:    at(wire.RegLatency),
	}
}

// checkIdent rejects a card whose identification block is out of bounds, because its sizes
// decide how much memory this host reserves.
func checkIdent(name string, read func(addr uint32) uint64) error {
	err := wire.CheckIdent(read)
	if err == nil && wire.Shell(read(wire.RegShell)) == wire.ShellNone {
		err = wire.CheckFrames(read) // such a card is simulated, behind a byte stream
	}
	var ident *wire.IdentError
	switch {
	case !errors.As(err, &ident):
		return err
	case ident.Newer:
		return &NoCardError{Name: name, Reason: fmt.Sprintf("the card is newer than this driver: its %s; use the driver that came with the card's hwgen", ident)}
	}
	return &NoCardError{Name: name, Reason: fmt.Sprintf("the card's identification block is invalid: %s; generate the card again", ident)}
}

// CheckAdds returns an InputError about what when the card's results are not sums of numbers,
// as with max. A mean or a block exponent has no meaning for such results.
func (i Info) CheckAdds(what string) error {
	if sum, ok := i.Sum.Info(); ok && sum.Adds {
		return nil
	}
	return &InputError{What: what, Why: fmt.Sprintf("card %s computes %s, whose results are not sums; use a card that adds", i.Name, i.Sum)}
}

// Mean divides results of the card in place by the number of their members, 1 to 64, as
// element.Mean does: those of partials by the number of their ranks. When the card does not add, it
// returns an InputError and changes nothing.
func (i Info) Mean(sums []byte, members int, partials ...Partial) error {
	if err := i.CheckAdds("mean"); err != nil {
		return err
	}
	size, done := element.Size(i.Result), 0
	for _, p := range partials {
		element.Mean(i.Result, sums[done*size:p.From*size], members)
		element.Mean(i.Result, sums[p.From*size:p.To*size], len(p.Ranks))
		done = p.To
	}
	element.Mean(i.Result, sums[done*size:], members)
	return nil
}

// Counters reads all of the card's counters; those of an up port are the last.
func (c *Card) Counters(ctx context.Context) ([]Counter, error) {
	all := slices.Clone(wire.CountersOf(c.info.Shell))
	var reads []frame.Header
	for i := range all {
		reads = append(reads, readHeader(wire.CounterAddr(i)))
	}
	if c.info.Parent {
		for i, row := range wire.UpCounters {
			all = append(all, row)
			reads = append(reads, readHeader(wire.UpCounterAddr(i)))
		}
	}
	values, err := c.accessRegisters(ctx, reads...)
	if err != nil {
		return nil, err
	}
	counters := make([]Counter, len(all))
	for i, row := range all {
		counters[i] = Counter{Name: row.Name, Value: uint32(values[i]), Doc: row.Doc}
		if row.Refuse != 0 {
			counters[i].Doc = codeDoc(row.Refuse)
		}
	}
	return counters, nil
}
