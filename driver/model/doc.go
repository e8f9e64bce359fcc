// Package model computes the replies of a Tributary card, bit for bit. It is
// written from the specification (driver/wire/SPEC.md, NETWORK.md, TREES.md, ROCE.md) and the
// tables beside it, never from the gateware, the generator or the driver, so
// that it cannot inherit their mistakes; it imports nothing of ours but
// driver/wire.
//
// It has four parts:
//
//   - Arithmetic sums elements, also over the cards of a tree.
//   - Card is the core at packet level: Handle commits one packet of a port,
//     Next returns the next packet that leaves, Register is the register bus.
//     The up port of a card in a tree has the number after the last port's for
//     Handle; what leaves there is for NextUp.
//     A Card reads no clock, so the same calls give the same replies. Only
//     Serve runs it in real time.
//   - Link is the byte stream of the shell "stream" around a Card, and
//     Card.Serve runs one over a connection: that is the "model:" card.
//   - Endpoint is the shell "udp" around a Card: datagrams with their addresses.
//     Package driver/virtual/udp puts one behind a socket. A card with an up port
//     has a UDP port for each parent besides: ReceiveUp and SendUp. With the shell
//     "roce", datagrams are accesses alone, and data packets are Ethernet frames:
//     TakeFrame and SendFrame.
//
// # Time
//
// The model has no pipeline. Its clock drives the CYCLES register and the limit
// on answered refusals. It advances by one for every beat that enters or leaves
// at the core's ports, and for every register access; a packet without payload
// is one beat. Advance moves it further, and Serve calls Advance in real time.
// Whenever the clock has moved, the card checks its owner's lease and then all
// slots, before it processes the cause of the move. It acts once on each
// overdue slot: at its deadline, or at the first call after it. The same clock
// measures the lateness of contributions.
//
// After its last contribution, a slot is "reducing" until Reduce is called; Next
// calls it. Every sum takes one pass: the counters undecided and stalled stay 0.
//
// The specification leaves a card some choices. This card answers a port before
// it sends it a notice, and statuses of one kind do not replace those of the
// other. A result owed to a rank before its eviction stays owed. A collecting
// slot that holds the contributions of all remaining members waits for its
// deadline.
package model
