// Package cpu is a Tributary card in software, for those who have none. It follows the
// specification (driver/wire/SPEC.md) like every card, so its results have a card's bits.
//
// One engine keeps the slots, jobs, deadlines and registers. It holds no lock, reads no clock and
// copies no contribution. Card puts a lock around it and takes packets; Link and Card.Serve put the
// byte stream of the shell "stream" around a Card. Endpoint puts the datagrams of the shell "udp"
// around one (driver/wire/NETWORK.md); package driver/virtual/udp has its socket.
//
// A card with an up port has tree jobs as well (driver/wire/TREES.md). Their sums go to the parent at
// the up port: Card.NextUp, or Endpoint.SendUp.
//
// Members in the process of the card hand over whole arrays instead (Exchange). Where all members
// of a job have done so, goroutines sum the arrays without slots, and the slots are then set as if
// the chunks had passed them.
//
// A front hands the engine a header with take. If take says so, the front hands over the
// contribution with store at once, as memory that stays as it is until the sum is done: the
// member's, or the slot's (keep). reduceAll makes the sums, next begins what leaves, and register
// and advance do the rest.
//
// The engine keeps to the specification where that leaves no choice, and otherwise to the
// choices of package model, with which a test compares it step by step:
//
//   - The clock advances by one cycle for every beat that enters or leaves at the core's ports, and
//     for every register access. Advance moves it further.
//   - When the clock has moved, the card acts once on each overdue slot, job by job, in the order of
//     a job's slots, before it processes the cause of the move.
//   - With shell udp, a lease that has expired by then ends first.
//   - Every sum takes one pass: the counters undecided and stalled stay 0.
//   - Answers leave before notices, and neither replaces the other. A result owed to a rank before
//     its eviction stays owed. A collecting slot that holds the contributions of all remaining
//     members waits for its deadline.
//
// Memory is bounded by the configuration: each of the 2·WINDOW slots holds a contribution of CHUNK
// elements for each port, and a result. A slot allocates them when it first needs them, for chunks
// of its job's size; in the steady state nothing is allocated.
package cpu
