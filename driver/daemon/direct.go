package daemon

import (
	"fmt"

	"tributary/driver"
	"tributary/driver/daemon/protocol"
	"tributary/driver/wire"
)

// Jobs whose members exchange datagrams with a card on a network themselves (SPEC.md, section 12).

// offersDirect reports whether the frames of a client's session do not pass through the daemon.
func (s *Server) offersDirect(c *card, hello *protocol.Hello) bool {
	return hello.Direct && !s.options.Relay && !c.underRoCE() && c.driver.Network() != ""
}

// way names how the frames of a session, or a job, reach the card.
func way(direct bool) string {
	if direct {
		return "directly to the card"
	}
	return "through the daemon"
}

// differingWay refuses a member whose frames take another way than those of the job, or that did not tell
// from which address its datagrams come.
func (j *job) differingWay(s *session, p *protocol.Join) *refusal {
	switch {
	case s.direct != j.direct:
		return &refusal{reason: protocol.Reason_PARAMETERS, field: "way",
			text: fmt.Sprintf("way: frames of this member go %s, those of the job %s", way(s.direct), way(j.direct))}
	case s.direct && p.GetSource() == 0:
		return &refusal{reason: protocol.Reason_PARAMETERS, field: "source", text: "source: a direct member reads it from the card before it joins"}
	}
	return nil
}

// noteAddress notes where the datagrams of a seat come from, and the epochs that must not come again.
func (s *seat) noteAddress(p *protocol.Join) {
	s.address = wire.Address{Station: p.GetSource(), MAC: p.GetSourceMac()}
	s.seen = nil
	for _, epoch := range p.GetSeen() {
		s.seen = append(s.seen, uint16(epoch))
	}
}

// directed adds the members' addresses to a job's parameters, with the epochs that are not for it.
func (j *job) directed(cfg driver.RelayConfig) driver.RelayConfig {
	if !j.direct {
		return cfg
	}
	j.card.mu.Lock()
	defer j.card.mu.Unlock()
	for _, s := range j.seats {
		cfg.Members = append(cfg.Members, s.address)
		cfg.Avoid = append(cfg.Avoid, s.seen...)
	}
	return cfg
}

// agree lets direct seats send the data of calls that all of them have announced.
func (j *job) agree() {
	if !j.direct && j.rdma == nil || j.state != running {
		return
	}
	first, vid := true, uint32(0)
	for _, s := range j.seats {
		if (j.rdma != nil || j.takesPart(s)) && (first || int32(s.next-vid) < 0) {
			first, vid = false, s.next
		}
	}
	if first || j.hasAgreed && vid == j.agreed {
		return
	}
	j.agreed, j.hasAgreed = vid, true
	j.stopExpecting()
	j.tell(everyone, &protocol.ToClient{Message: &protocol.ToClient_Agreed{Agreed: &protocol.Agreed{Nonce: j.nonce, Vid: vid}}})
}

// takeDirectFinish notes that the card has confirmed a direct seat's finish.
func (j *job) takeDirectFinish(seat *seat) {
	if j.state != running && j.state != stopped {
		return
	}
	j.confirmFinish(seat)
	if j.state == stopped && j.stop != nil {
		j.stop.left(seat)
	}
}
