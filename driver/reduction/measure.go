package reduction

import (
	"context"
	"time"

	"tributary/driver"
	"tributary/driver/element"
	"tributary/driver/wire"
)

// Measurement holds the progress of a card's clock and counters during some work.
type Measurement struct {
	Began   uint64            // the clock when it began
	Cycles  uint64            // of the clock, during the work
	Rise    map[string]uint32 // of each counter
	Elapsed time.Duration
}

// Measure runs work and measures it. It reads the clock last before work and first after it. It
// returns the errors of work and of ReadRegister.
func Measure(ctx context.Context, card *driver.Card, work func() error) (Measurement, error) {
	before, err := card.Counters(ctx)
	if err != nil {
		return Measurement{}, err
	}
	from, err := card.ReadRegister(ctx, wire.RegCycles)
	if err != nil {
		return Measurement{}, err
	}
	start := time.Now()
	if err := work(); err != nil {
		return Measurement{}, err
	}
	m := Measurement{Rise: map[string]uint32{}, Elapsed: time.Since(start)}
	to, err := card.ReadRegister(ctx, wire.RegCycles)
	if err != nil {
		return Measurement{}, err
	}
	m.Began, m.Cycles = from, to-from
	after, err := card.Counters(ctx)
	for i, c := range after {
		m.Rise[c.Name] = c.Value - before[i].Value
	}
	return m, err
}

// measureAll is Measure on several cards. The work of each contains the readings of those before it.
func measureAll(ctx context.Context, cards []driver.TreeCard, work func() error) ([]Measurement, error) {
	all := make([]Measurement, len(cards))
	for i, c := range cards {
		inner := work
		work = func() (err error) {
			all[i], err = Measure(ctx, c.Card, inner)
			return err
		}
	}
	return all, work()
}

// LinkBound returns the cycles that the frames of a reduction take on a card's shared link, both
// directions at once: one data frame from each worker in, and one result frame out, or one for each
// worker on a network, where the card has one Ethernet port. It is 0 for a card without a link, or
// one that takes arrays.
func LinkBound(chunks uint64, workers, chunk int, card driver.Info) uint64 {
	if card.Link == 0 || card.Arrays {
		return 0
	}
	data, _ := wire.KindData.Info()
	result, _ := wire.KindResult.Info()
	in := uint64(workers * data.FrameBytes(chunk*element.Size(card.Format)))
	out := uint64(result.FrameBytes(chunk * element.Size(card.Result)))
	if card.Shell == wire.ShellUDP {
		in = uint64(workers * (data.DatagramBytes(chunk*element.Size(card.Format)) + ethernetBytes))
		out = uint64(workers * (result.DatagramBytes(chunk*element.Size(card.Result)) + ethernetBytes))
	}
	return (chunks*max(in, out)*8 + uint64(card.Link) - 1) / uint64(card.Link)
}

// ethernetBytes is what a datagram takes on Ethernet beside its bytes: preamble and gap, the headers
// of Ethernet, IPv4 and UDP, and the FCS.
const ethernetBytes = 8 + 12 + 14 + 20 + 8 + 4
