package driver

// How many elements fit into a packet on the way to a card on a network.

import (
	"fmt"
	"math/bits"

	"tributary/driver/element"
	"tributary/driver/wire"
)

// mostChunk returns the most elements in a chunk that the way to the card carries.
func (i Info) mostChunk() int {
	if i.Packet == 0 {
		return i.Chunk
	}
	return i.chunkWithin(func(k wire.KindInfo, payload int) bool { return k.DatagramBytes(payload) <= i.Packet })
}

// commonChunk returns the most elements of a chunk that all of several cards take, or 0.
func commonChunk(cards []Info) int {
	most, lanes := cards[0].mostChunk(), 1
	for _, i := range cards {
		most, lanes = min(most, i.mostChunk()), max(lanes, i.Lanes)
	}
	return most / lanes * lanes // lanes are powers of two
}

// fillChunk fills in the largest chunk that all of several cards take, unless the program has chosen one.
func (cfg *JobConfig) fillChunk(cards []Info) error {
	if cfg.Chunk == 0 {
		cfg.Chunk = commonChunk(cards)
	}
	if cfg.Chunk == 0 {
		return &InputError{"chunk", "the lanes of one card are more than the largest chunk of another; use cards with the same lanes"}
	}
	return nil
}

// chunkInFrames returns the most elements in a chunk that frames carry: the byte stream of a daemon
// may lead to a card on a network.
func (i Info) chunkInFrames() int {
	return i.chunkWithin(func(k wire.KindInfo, payload int) bool { return k.FrameBytes(payload) <= wire.MaxFrameBytes })
}

// chunkWithin returns the largest chunk, at least a beat, whose data and results both fit.
func (i Info) chunkWithin(fits func(k wire.KindInfo, payload int) bool) int {
	data, _ := wire.KindData.Info()
	result, _ := wire.KindResult.Info()
	chunk := i.Chunk
	for chunk > i.Lanes && !(fits(data, chunk*element.Size(i.Format)) && fits(result, chunk*element.Size(i.Result))) {
		chunk -= i.Lanes
	}
	return chunk
}

// checkFrames returns an InputError for a chunk that frames do not carry.
func (i Info) checkFrames(chunk int) error {
	if most := i.chunkInFrames(); chunk > most {
		return &InputError{"chunk", fmt.Sprintf("%d elements; members in other processes send frames, which have up to %d of card %s", chunk, most, i.Name)}
	}
	return nil
}

// unreadBytes estimates what the kernel counts for the results of a job in flight, each of which
// comes once for every member: a power of two, and its own record.
func (i Info) unreadBytes(cfg JobConfig) int {
	packet := wire.MaxHeaderBytes + cfg.Chunk*element.Size(i.Result)
	return cfg.Workers * cfg.Window * (1<<bits.Len(uint(packet+kernelBytes)) + kernelBytes)
}

// warnOfRoom warns when the kernel keeps less than what a job has in flight.
func (c *Card) warnOfRoom(l *link, cfg JobConfig) {
	needs, keeps := c.info.unreadBytes(cfg), l.limits.Unread
	if c.opts.warn == nil || keeps == 0 || needs <= keeps {
		return
	}
	c.opts.warn(fmt.Sprintf("the kernel keeps %d bytes of unread packets of card %s, but the %d results in flight may take %d; beyond that they are lost and sent again; allow more with `sysctl net.core.rmem_max=%d`, or use a smaller window",
		keeps, c.name, cfg.Workers*cfg.Window, needs, needs))
}

// kernelBytes is what the kernel keeps for a packet beside its bytes, about, twice.
const kernelBytes = 384
