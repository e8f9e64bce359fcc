package driver

// What a card says about itself: its identification block and its counters.

import (
	"context"
	"errors"
	"fmt"

	"tributary/driver/element"
	"tributary/driver/frame"
	"tributary/driver/wire"
)

// Info is a card's identification block.
type Info struct {
	Name       string      // as given to Open
	Version    int         // protocol version
	ConfigHash uint64      // over the fields below, as REGISTERS.md says
	Lanes      int         // elements in a beat
	Ports      int         // the most members a job can have
	Format     wire.Format // of the contributions
	Result     wire.Format // of the results
	Sum        wire.Sum
	Saturate   bool // int32 sums stop at the largest and smallest integer; else they wrap around
	Shell      wire.Shell
	Chunk      int // most elements in a chunk
	Window     int // most chunks in a job's window; twice as many slots are for all jobs
	Jobs       int // jobs that can be set up at once: the smaller of JOBS and WINDOW, as each takes a window of at least one chunk
	Link       int // bits the link moves in a cycle
	Latency    int // cycles from a chunk's last beat in to its first beat out, at the core
}

// Counter is the value of one of the card's counters, wire.Counters.
type Counter struct {
	Name  string
	Value uint32 // wraps around
	Doc   string
}

// LinkStats counts what this host's receiver saw since Open.
type LinkStats struct {
	Frames     uint64 // frames received whole
	Hunted     uint64 // bytes passed over in search of a sync word
	HeaderCRC  uint64 // headers whose CRC was wrong
	PayloadCRC uint64 // payloads whose CRC was wrong
	Refused    uint64 // headers with a kind, version, format or length that cannot be
	BytesIn    uint64 // bytes read from the link
	BytesOut   uint64 // bytes written to the link
}

func (s LinkStats) plus(o LinkStats) LinkStats {
	return LinkStats{
		Frames:     s.Frames + o.Frames,
		Hunted:     s.Hunted + o.Hunted,
		HeaderCRC:  s.HeaderCRC + o.HeaderCRC,
		PayloadCRC: s.PayloadCRC + o.PayloadCRC,
		Refused:    s.Refused + o.Refused,
		BytesIn:    s.BytesIn + o.BytesIn,
		BytesOut:   s.BytesOut + o.BytesOut,
	}
}

// identify reads the identification block and checks that this driver can talk
// to the card.
func (c *Card) identify(ctx context.Context, l *link) (Info, error) {
	magic, err := c.readOn(ctx, l, wire.RegMagic)
	if err != nil {
		return Info{}, err
	}
	if magic != wire.Magic {
		return Info{}, &NoCardError{Name: c.name, Reason: fmt.Sprintf("what answers there is no Tributary card: its MAGIC is %016x, not %016x", magic, wire.Magic)}
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
	return newInfo(c.name, values), nil
}

// expecter is a transport.Conn that knows which card it leads to. A sim: card
// does: its folder's manifest says so.
type expecter interface {
	ExpectedHash() (hash uint64, from string)
}

// Where the parts of FORMAT and SUM stand.
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
		Chunk:      at(wire.RegChunk),
		Window:     at(wire.RegWindow),
		Jobs:       min(at(wire.RegJobs), at(wire.RegWindow)),
		Link:       at(wire.RegLink),
		Latency:    at(wire.RegLatency),
	}
}

// checkIdent refuses a card whose identification block is beyond its bounds: its
// sizes decide how much memory this host reserves.
func checkIdent(name string, read func(addr uint32) uint64) error {
	err := wire.CheckIdent(read)
	if err == nil {
		err = wire.CheckFrames(read) // whatever its shell, it answers on a byte stream
	}
	var ident *wire.IdentError
	switch {
	case !errors.As(err, &ident):
		return err
	case ident.Newer:
		return &NoCardError{Name: name, Reason: fmt.Sprintf("the card is newer than this driver, which does not know its %s; take the driver that came with the card's hwgen", ident)}
	}
	return &NoCardError{Name: name, Reason: fmt.Sprintf("the card's identification block makes no sense: %s; generate the card again", ident)}
}

// CheckAdds returns an InputError, about what was asked for, when the card's
// results are no sums of numbers, as those of max are not. A mean of them, and
// blocks with one exponent, would mean nothing.
func (i Info) CheckAdds(what string) error {
	if sum, ok := i.Sum.Info(); ok && sum.Adds {
		return nil
	}
	return &InputError{What: what, Why: fmt.Sprintf("card %s computes %s, whose results are not sums; take a card that adds", i.Name, i.Sum)}
}

// Mean divides results of the card, in place, by the number of their members, 1
// to 64, as element.Mean does. It returns an InputError, and changes nothing,
// when the card does not add.
func (i Info) Mean(sums []byte, members int) error {
	if err := i.CheckAdds("mean"); err != nil {
		return err
	}
	element.Mean(i.Result, sums, members)
	return nil
}

// Counters reads all of the card's counters.
func (c *Card) Counters(ctx context.Context) ([]Counter, error) {
	reads := make([]frame.Header, len(wire.Counters))
	for i := range reads {
		reads[i] = readHeader(wire.CounterAddr(i))
	}
	values, err := c.accessRegisters(ctx, reads...)
	if err != nil {
		return nil, err
	}
	counters := make([]Counter, len(wire.Counters))
	for i, row := range wire.Counters {
		counters[i] = Counter{Name: row.Name, Value: uint32(values[i]), Doc: row.Doc}
		if row.Refuse != 0 {
			counters[i].Doc = codeDoc(row.Refuse)
		}
	}
	return counters, nil
}
