package daemon

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"time"

	"tributary/driver"
	"tributary/driver/daemon/protocol"
	"tributary/driver/element"
	"tributary/driver/wire"
)

// Jobs of RDMA connections, on a card under RoCEv2 (SPEC.md, section 14).

// rdma is what such a job has beside its seats. The card's mutex guards it, except for constants.
type rdma struct {
	registered *driver.Connections // once the card has them
	late       *time.Timer         // ends the job if some ranks do not come; nil: no rank waits
	alive      map[*seat]bool      // queue pairs of a job that is over
	settled    chan struct{}       // closed when alive does not change any more
}

// defaultLateness is the deadline of a job that sets none.
const defaultLateness = time.Minute

// mostText is the most bytes of a client's text that other clients get.
const mostText = 1 << 10

// underRoCE reports whether the card's jobs are of RDMA connections.
func (c *card) underRoCE() bool {
	return c.single != nil && c.single.Info().Shell == wire.ShellRoCE
}

// connect takes the connection of a seat. A seat whose connection is refused is free again.
func (s *session) connect(p *protocol.Connect) *refusal {
	c := s.card
	c.mu.Lock()
	defer c.mu.Unlock()
	j, seat := c.seatOf(s, p.Nonce, p.Rank)
	switch {
	case seat == nil:
		return refuse(protocol.Reason_NO_JOB, "the session has no seat of rank %d in job %016x; the job has ended, or the seat was given back", p.Rank, p.Nonce)
	case j.rdma == nil:
		return refuse(protocol.Reason_PARAMETERS, "the card is not under RoCEv2: its jobs have no connections")
	case j.state != gathering || seat.end != nil:
		return refuse(protocol.Reason_STARTED, "rank %d has connected already", p.Rank)
	}
	if r := j.wrongConnection(seat, p.Connection); r != nil {
		seat.session = nil
		j.report()
		j.endIfForsaken("the connection of the only member was refused")
		return r
	}
	seat.end = p.Connection
	s.tell(&protocol.ToClient{Message: &protocol.ToClient_Connected{Connected: &protocol.Connected{Request: p.Request}}})
	j.startIfComplete()
	return nil
}

// wrongConnection refuses a connection that cannot be one of the job.
func (j *job) wrongConnection(seat *seat, k *protocol.Connection) *refusal {
	wrong := func(field, format string, args ...any) *refusal {
		return &refusal{reason: protocol.Reason_PARAMETERS, field: field, text: fmt.Sprintf("%s: rank %d has %s", field, seat.rank, fmt.Sprintf(format, args...))}
	}
	const most = 1 << wire.ConnectionNumberBits
	isQPN := func(n uint32) bool { return n >= wire.FirstQPN && n < most }
	switch mtu := j.parameters.Chunk * element.Size(j.card.driver.Info().Format); {
	case k == nil:
		return wrong("connection", "none")
	case int(k.Mtu) != mtu:
		return wrong("MTU", "packets of %d bytes, the job of %d; give all ranks the same MTU", k.Mtu, mtu)
	case !isQPN(k.SendQpn) || !isQPN(k.ReceiveQpn):
		return wrong("QPN", "%d and %d, which are not from %d to %d", k.SendQpn, k.ReceiveQpn, wire.FirstQPN, most-1)
	case len(j.seats) == 2 && k.SendQpn != k.ReceiveQpn:
		return wrong("QPN", "two queue pairs; two ranks share one connection")
	case k.FirstPsn >= most:
		return wrong("PSN", "%d, which has more than %d bits", k.FirstPsn, wire.ConnectionNumberBits)
	case k.Ip == 0 || k.Mac>>56 != 0:
		return wrong("address", "IPv4 address %08x and MAC address %014x", k.Ip, k.Mac)
	}
	for _, other := range j.seats {
		if other != seat && other.end != nil && other.end.Ip == k.Ip && other.end.ReceiveQpn == k.ReceiveQpn {
			return wrong("QPN", "the queue pair of rank %d", other.rank)
		}
	}
	return nil
}

// allConnected reports whether all seats have the connections that their card needs.
func (j *job) allConnected() bool {
	for _, s := range j.seats {
		if j.rdma != nil && s.end == nil {
			return false
		}
	}
	return true
}

// connections returns those of a job by rank; nil on cards of other shells.
func (j *job) connections() (all []*protocol.Connection) {
	for _, s := range j.seats {
		if s.end != nil {
			all = append(all, s.end)
		}
	}
	return all
}

// startConnections registers the connections with the card, and sets the job up.
func (j *job) startConnections(ctx context.Context) {
	c := j.card
	cfg := driver.ConnectConfig{Ports: j.parameters.Ports, Window: j.parameters.Window}
	for _, s := range j.seats { // they do not change after gathering
		cfg.Ranks = append(cfg.Ranks, connectedRank(s.end))
	}
	c.connecting.Lock()
	err := j.setNeighbours(ctx)
	var registered *driver.Connections
	if err == nil {
		registered, err = c.single.Connect(ctx, cfg)
	}
	c.connecting.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	j.rdma.registered = registered
	if !j.isSetUp(err) {
		return
	}
	j.number = uint8(registered.Number())
	c.numbered[j.number] = j
	go func() {
		<-registered.Done()
		j.Ended(registered.Err())
	}()
	j.begin()
}

// connectedRank returns a connection as the driver takes it.
func connectedRank(k *protocol.Connection) driver.ConnectedRank {
	var ip [4]byte
	binary.BigEndian.PutUint32(ip[:], k.Ip)
	var mac [8]byte
	binary.BigEndian.PutUint64(mac[:], k.Mac)
	return driver.ConnectedRank{
		Address: netip.AddrFrom4(ip), MAC: net.HardwareAddr(mac[2:]), EthernetPort: int(mac[1]),
		ReceiveQPN: k.ReceiveQpn, FirstPSN: k.FirstPsn, MTU: int(k.Mtu),
	}
}

// takeConnectedFinish notes that a seat has received and completed everything. With the last one the job is
// over for all.
func (j *job) takeConnectedFinish(seat *seat) {
	if j.state != running {
		return
	}
	j.finished |= seat.bit()
	if j.finished == j.allRanks() {
		j.end(&protocol.Ended{Cause: protocol.Cause_FINISHED})
		return
	}
	j.expectOthers()
}

// behind returns the ranks that the others wait for: those that have not announced the newest call or, if there
// are none and a rank has finished, those that have not.
func (j *job) behind() (ranks []uint32) {
	newest := uint64(0)
	for _, s := range j.seats {
		newest = max(newest, s.calls)
	}
	for _, s := range j.seats {
		if s.calls < newest {
			ranks = append(ranks, uint32(s.rank))
		}
	}
	if len(ranks) > 0 || j.finished == 0 {
		return ranks
	}
	for _, s := range j.seats {
		if j.finished&s.bit() == 0 {
			ranks = append(ranks, uint32(s.rank))
		}
	}
	return ranks
}

// expectOthers ends the job when the deadline has passed and some ranks have not come to where others are.
func (j *job) expectOthers() {
	if j.rdma == nil || j.state != running || j.rdma.late != nil || len(j.behind()) == 0 {
		return
	}
	deadline := j.parameters.Deadline
	if deadline == 0 {
		deadline = defaultLateness
	}
	var late *time.Timer
	late = time.AfterFunc(deadline, func() {
		j.card.mu.Lock()
		defer j.card.mu.Unlock()
		if j.state != running || j.rdma.late != late {
			return
		}
		ranks := j.behind()
		j.end(&protocol.Ended{Cause: protocol.Cause_MEMBER_FAILED, Ranks: ranks,
			Text: fmt.Sprintf("ranks %d came later than %s after the others", ranks, deadline)})
	})
	j.rdma.late = late
}

// stopExpecting stops the deadline of expectOthers: the ranks have come, or the job is over.
func (j *job) stopExpecting() {
	if j.rdma != nil && j.rdma.late != nil {
		j.rdma.late.Stop()
		j.rdma.late = nil
	}
}

// failed returns the end of a job because of a seat's queue pair.
func failed(seat *seat, why string) *protocol.Ended {
	return &protocol.Ended{Cause: protocol.Cause_MEMBER_FAILED, Ranks: []uint32{uint32(seat.rank)}, Text: fmt.Sprintf("rank %d: %.*s", seat.rank, mostText, why)}
}

// disconnect ends a job on the card, after its queue pairs have gone. Then it removes the connections; if
// some queue pairs may live, the card goes on dropping their packets.
func (j *job) disconnect() {
	c := j.card
	allGone := j.awaitQueuePairs()
	if j.rdma.registered == nil {
		return // the set-up failed
	}
	ctx, cancel := context.WithTimeout(context.Background(), dropTimeout)
	defer cancel()
	c.connecting.Lock() // so that the number has no newer connections
	defer c.connecting.Unlock()
	if j.rdma.registered.End(ctx) == nil && allGone {
		_ = j.rdma.registered.Disconnect(ctx) // else they are there until the next set-up
	}
}

// part notes that the job is over, and that its queue pairs live.
func (j *job) part() {
	r := j.rdma
	r.alive, r.settled = map[*seat]bool{}, make(chan struct{})
	j.card.parting[j.nonce] = j
	for _, s := range j.seats {
		r.alive[s] = true
	}
	if len(j.missing()) > 0 {
		j.settle()
	}
}

// settle ends the wait for queue pairs: all have gone, or somebody will not report them.
func (j *job) settle() {
	if c := j.card; c.parting[j.nonce] == j {
		delete(c.parting, j.nonce)
		close(j.rdma.settled)
	}
}

// forgetQueuePairs ends the waits for queue pairs of a session that has ended.
func (s *session) forgetQueuePairs() {
	for _, j := range s.card.parting {
		for seat := range j.rdma.alive {
			if seat.session == s {
				j.settle()
			}
		}
	}
}

// awaitQueuePairs waits until all seats have removed their queue pairs, while all may report it, for at most
// dropTimeout. It reports whether they have.
func (j *job) awaitQueuePairs() bool {
	c, r := j.card, j.rdma
	select {
	case <-r.settled:
	case <-time.After(dropTimeout):
	case <-c.server.running.Done():
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	j.settle()
	return len(r.alive) == 0
}

// disconnected notes that the queue pairs of a seat have gone.
func (s *session) disconnected(p *protocol.Disconnected) {
	c := s.card
	c.mu.Lock()
	defer c.mu.Unlock()
	j := c.parting[p.Nonce]
	if j == nil || int(p.Rank) >= len(j.seats) || j.seats[p.Rank].session != s || !j.rdma.alive[j.seats[p.Rank]] {
		return
	}
	delete(j.rdma.alive, j.seats[p.Rank])
	if len(j.rdma.alive) == 0 {
		j.settle()
	}
}
