// Package model computes what a Tributary card must answer, bit for bit. It is
// written from the specification (driver/wire/SPEC.md) and the tables beside
// it, never from the gateware, the generator or the driver, so that it cannot
// inherit their mistakes; it imports nothing of ours but driver/wire.
//
// It has three faces:
//
//   - Arithmetic is what is done to the elements alone.
//   - Card is the core at packet level: Handle takes one packet at a port,
//     Next gives the next packet that leaves, Register is the register bus.
//     A Card does nothing by itself and reads no clock, so the same calls
//     give the same answers; but one that is served lives in time.
//   - Link is the byte stream of the shell "stream" around a Card, and
//     Card.Serve runs one over a connection: that is the "model:" card.
//
// # Time
//
// The model has no pipeline. Its clock, which the CYCLES register and the
// limit on answered refusals read, advances by one for every beat that enters
// or leaves at the core's ports (a packet without payload is one beat) and for
// every register access; Advance lets more time pass, and Serve calls it as time
// passes. Whenever the clock has moved, and before what moved it is judged, the
// card looks at all slots and acts once upon each that is overdue by then: at its
// deadline, or at the first call behind it. How late a contribution comes is
// counted by the same clock.
//
// A slot whose last contribution came is "reducing" until Reduce is called; Next
// calls it. It needs one pass for every sum: the counters undecided and stalled
// stay 0.
//
// Where the specification leaves a card the choice, this one answers a port before
// it sends it a notice, a status of the one kind does not replace one of the other,
// a result that was owed to a rank before it was evicted stays owed, and a
// collecting slot that holds all members that are left waits for its deadline.
package model
