package driver

// The owner's side of a card under RoCEv2 (ROCE.md, sections 2 and 7): it registers the connections of
// the ranks' queue pairs. No packet of the ranks passes through this program.

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"

	"tributary/driver/element"
	"tributary/driver/frame"
	"tributary/driver/wire"
)

// ConnectedRank is what the process of a rank tells the owner of a card about its queue pairs, in state
// INIT.
type ConnectedRank struct {
	Address      netip.Addr       // IPv4
	MAC          net.HardwareAddr // 6 bytes
	EthernetPort int              // of the card, behind which the rank is: SOURCE_MAC has it in bits 55:48

	ReceiveQPN uint32 // of the queue pair that receives
	FirstPSN   uint32 // of the queue pair that sends
	MTU        int    // path MTU in bytes
}

// ConnectConfig holds the parameters of a job under RoCEv2.
type ConnectConfig struct {
	Ranks  []ConnectedRank
	Next   []int // by rank: the rank that it sends to; nil means a ring, in which rank r sends to r + 1
	Ports  []int // of the core, ascending, rank r on Ports[r]; nil means 0..len(Ranks)-1
	Window int   // packets in flight, a power of two; 0 means Info.Window/Info.Jobs
}

// Connections is a job under RoCEv2: registered connections, whose packets the card sums. It lives until
// End, or until this program has lost the card (Card.Done). Its connections stay registered until
// Disconnect, a later job under its number, or a reset; their packets are dropped meanwhile.
type Connections struct {
	job *Job
}

// Connect registers the connections of all ranks, and sets a job up for them. When it has returned, the
// caller tells each rank its peer, and they connect their queue pairs.
//
// Errors: InputError when cfg cannot be right, such as ranks of different MTUs; others are those of
// Configure.
func (c *Card) Connect(ctx context.Context, cfg ConnectConfig) (*Connections, error) {
	if c.info.Shell != wire.ShellRoCE || c.shared {
		return nil, &InputError{"connections", "card " + c.name + " has none: open a card generated with -shell roce, by its address"}
	}
	job, connected, err := c.info.connect(cfg)
	if err != nil {
		return nil, err
	}
	if err := c.takeTurn(ctx, c.configuring, "set-up of connections"); err != nil {
		return nil, err
	}
	defer func() { <-c.configuring }()
	l, err := c.present(ctx, "set-up of connections")
	if err != nil {
		return nil, err
	}
	j, err := c.configureOn(ctx, l, job, nil, connected)
	if err != nil {
		return nil, err
	}
	return &Connections{j}, nil
}

// connect checks cfg against the card. It returns the job, and what the card registers, by rank.
func (i Info) connect(cfg ConnectConfig) (job JobConfig, connected []connectedMember, err error) {
	if len(cfg.Ranks) == 0 {
		return job, nil, &InputError{"ranks", "there is none"}
	}
	mtu := cfg.Ranks[0].MTU
	if !slices.Contains(wire.ConnectionMTUs, mtu) {
		return job, nil, &InputError{"MTU", fmt.Sprintf("%d bytes; it must be one of %v", mtu, wire.ConnectionMTUs)}
	}
	job, err = i.completeConnected(JobConfig{Workers: len(cfg.Ranks), Ports: cfg.Ports, Window: cfg.Window, Chunk: mtu / element.Size(i.Format)})
	if err != nil {
		return job, nil, err
	}
	next, err := cfg.next()
	if err != nil {
		return job, nil, err
	}
	for rank, r := range cfg.Ranks {
		if r.MTU != mtu {
			return job, nil, &InputError{"MTU", fmt.Sprintf("rank %d has %d bytes, rank 0 has %d; give all the same", rank, r.MTU, mtu)}
		}
		at, err := r.address(rank)
		if err != nil {
			return job, nil, err
		}
		to := next[rank]
		connected = append(connected, connectedMember{at, connectionTo(cfg.Ranks[to].ReceiveQPN, r.FirstPSN, job.Ports[to])})
	}
	return job, connected, nil
}

// completeConnected is Complete for a job of connections, whose chunk is a packet of one MTU.
func (i Info) completeConnected(cfg JobConfig) (JobConfig, error) {
	i.Packet = 0 // the way to the card limits no packets of ranks
	complete, err := i.Complete(cfg)
	if err != nil {
		return complete, err
	}
	mtu := complete.Chunk * element.Size(i.Format)
	switch {
	case complete.Partial:
		return complete, &InputError{"partial sums", "an RDMA endpoint would take a partial sum for the sum; do without"}
	case complete.CarryOn > 0:
		return complete, &InputError{"carry on", "queue pairs do not outlive their job; do without"}
	case complete.DeadlineCycles > 0:
		return complete, &InputError{"deadline in cycles", "the daemon keeps the deadline of ranks with RDMA connections; give it as a time"}
	case complete.FirstVID != 0:
		return complete, &InputError{"first VID", "packets of RDMA connections begin with VID 0"}
	case !slices.Contains(wire.ConnectionMTUs, mtu):
		return complete, &InputError{"chunk", fmt.Sprintf("%d elements are packets of %d bytes; they must have one of %v", complete.Chunk, mtu, wire.ConnectionMTUs)}
	}
	return complete, nil
}

// next returns, by rank, the rank that it sends to. Each must receive from one.
func (cfg *ConnectConfig) next() ([]int, error) {
	ranks := len(cfg.Ranks)
	if cfg.Next == nil {
		ring := make([]int, ranks)
		for rank := range ring {
			ring[rank] = (rank + 1) % ranks
		}
		return ring, nil
	}
	if len(cfg.Next) != ranks {
		return nil, &InputError{"next", fmt.Sprintf("%d entries for %d ranks", len(cfg.Next), ranks)}
	}
	receives := make([]bool, ranks)
	for rank, to := range cfg.Next {
		if to < 0 || to >= ranks || receives[to] {
			return nil, &InputError{"next", fmt.Sprintf("rank %d sends to %d; every rank must receive from one", rank, to)}
		}
		receives[to] = true
	}
	return cfg.Next, nil
}

// address returns the rank's address as in the registers.
func (r *ConnectedRank) address(rank int) (wire.Address, error) {
	refuse := func(what, why string) (wire.Address, error) {
		return wire.Address{}, &InputError{what, fmt.Sprintf("rank %d: %s", rank, why)}
	}
	const most = 1 << wire.ConnectionNumberBits
	switch {
	case !r.Address.Is4():
		return refuse("address", fmt.Sprintf("%v is no IPv4 address", r.Address))
	case len(r.MAC) != 6:
		return refuse("MAC", fmt.Sprintf("%v has not 6 bytes", r.MAC))
	case r.EthernetPort < 0 || r.EthernetPort > 1<<8-1:
		return refuse("Ethernet port", fmt.Sprintf("%d is not from 0 to 255", r.EthernetPort))
	case r.ReceiveQPN < wire.FirstQPN || r.ReceiveQPN >= most:
		return refuse("QPN", fmt.Sprintf("%d is not from %d to %d", r.ReceiveQPN, wire.FirstQPN, most-1))
	case r.FirstPSN >= most:
		return refuse("PSN", fmt.Sprintf("%d has more than %d bits", r.FirstPSN, wire.ConnectionNumberBits))
	}
	ip := r.Address.As4()
	return wire.Address{
		Station: uint64(wire.RoCEPort)<<32 | uint64(binary.BigEndian.Uint32(ip[:])),
		MAC:     uint64(r.EthernetPort)<<48 | macNumber(r.MAC),
	}, nil
}

// macNumber returns a MAC address as in the registers.
func macNumber(mac net.HardwareAddr) (n uint64) {
	for _, b := range mac {
		n = n<<8 | uint64(b)
	}
	return n
}

// connectedMember is what the card registers of a rank.
type connectedMember struct {
	at         wire.Address
	connection uint64 // MEMBER_CONNECTION
}

// connectionTo returns MEMBER_CONNECTION of a connection to a queue pair at a port of the core.
func connectionTo(qpn, firstPSN uint32, port int) uint64 {
	return uint64(qpn) | uint64(firstPSN)<<wire.ConnectionPSNShift | uint64(port)<<wire.ConnectionPortShift
}

// stagedConnections returns the writes that stage the ranks' addresses and connections.
func (j *Job) stagedConnections() (writes []frame.Header) {
	for rank, port := range j.cfg.Ports {
		m := j.connected[rank]
		writes = append(writes,
			writeHeader(wire.MemberAddr(wire.RegMemberAddress, port), m.at.Station),
			writeHeader(wire.MemberAddr(wire.RegMemberMAC, port), m.at.MAC),
			writeHeader(wire.ConnectionAddr(port), m.connection))
	}
	return writes
}

// Number returns the job's number on the card.
func (k *Connections) Number() int { return k.job.Number() }

// Done returns a channel that is closed when Err does not return nil any more.
func (k *Connections) Done() <-chan struct{} { return k.job.gone }

// Err returns nil while the card sums for the connections. Otherwise it returns why it does not: the card
// has gone, or End, Reset or another Connect has ended the job (EndedError).
func (k *Connections) Err() error {
	j := k.job
	j.card.mu.Lock()
	defer j.card.mu.Unlock()
	if !j.ended {
		return nil
	}
	return j.endedError()
}

// End ends the job. From then on the card drops all packets of its connections, so the ranks must have
// received and completed everything. Errors are those of WriteRegister.
func (k *Connections) End(ctx context.Context) error { return k.job.Abort(ctx) }

// Disconnect removes the connections of an ended job, so that the card takes their packets for any other
// frames. Their queue pairs MUST be gone: otherwise gradients of a rank pass as sums. Errors are those of
// WriteRegister, and RefusedError with `busy` while a job of this number is set up.
func (k *Connections) Disconnect(ctx context.Context) error {
	_, err := k.job.card.WriteRegister(ctx, wire.RegJobDisconnect, uint64(k.job.Number()))
	return err
}

// Neighbour is a host for which a one-armed card relays frames.
type Neighbour struct {
	Address netip.Addr       // IPv4
	MAC     net.HardwareAddr // 6 bytes
}

// SetNeighbours sets the hosts for which a one-armed card relays frames, in place of those before: at most
// Info.Ports. They stay when this program releases the card; Reset clears them.
//
// Errors: InputError; RefusedError with `bad_address` for a card of several Ethernet ports; others are
// those of WriteRegister.
func (c *Card) SetNeighbours(ctx context.Context, neighbours []Neighbour) error {
	if len(neighbours) > c.info.Ports {
		return &InputError{"neighbours", fmt.Sprintf("%d, but card %s has room for %d", len(neighbours), c.name, c.info.Ports)}
	}
	addresses, macs := make([]uint64, c.info.Ports), make([]uint64, c.info.Ports)
	for i, n := range neighbours {
		if !n.Address.Is4() || len(n.MAC) != 6 {
			return &InputError{"neighbours", fmt.Sprintf("%v at %v is no IPv4 address with a MAC address", n.Address, n.MAC)}
		}
		ip := n.Address.As4()
		addresses[i], macs[i] = uint64(binary.BigEndian.Uint32(ip[:])), macNumber(n.MAC)
	}
	for range mostSetUps {
		right := true
		for i := range addresses {
			for addr, value := range map[uint32]uint64{wire.RegNeighbourAddress: addresses[i], wire.RegNeighbourMAC: macs[i]} {
				got, err := c.WriteRegister(ctx, wire.NeighbourAddr(addr, i), value)
				if err != nil {
					return err
				}
				right = right && got == value
			}
		}
		if right {
			return nil
		}
	}
	return &failure{at: place{card: c.name}, what: "the neighbours never became those that were written", err: errors.New("another program writes the card's registers")}
}
