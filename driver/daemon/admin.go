package daemon

import (
	"tributary/driver/frame"
	"tributary/driver/wire"
)

// mayWrite reports whether the session's writes of a register go to the card (SPEC.md, section 3). The
// registers of ownership and of jobs are the daemon's own. Those of a tree are the cards', except RESET.
func (s *session) mayWrite(addr uint32) bool {
	ours := addr == wire.RegOwner || addr == wire.RegRelease || addr >= wire.RegJobToken && addr <= wire.RegJobAbort || addr >= wire.JobBase
	return s.admin && s.card.server.options.Admin && !ours && (s.card.tree == nil || addr == wire.RegReset)
}

// accessCard makes a register access for the session, and returns the register's value. When the card
// is reset its jobs end, and the daemon owns it again.
func (s *session) accessCard(h *frame.Header) (uint64, error) {
	switch {
	case h.Kind == wire.KindRegRead:
		return s.card.driver.ReadRegister(s.over, h.VID)
	case h.VID == wire.RegReset:
		return 0, s.card.driver.Reset(s.over)
	}
	return s.card.single.WriteRegister(s.over, h.VID, h.Mask)
}
