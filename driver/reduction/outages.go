package reduction

import (
	"context"
	"slices"
	"sync"
)

// outageLog collects the outages that the driver reports from a goroutine of its own. A call may
// return before the driver reports that the card is back.
type outageLog struct {
	mu   sync.Mutex
	all  []Outage
	more chan struct{} // holds one element after an addition
}

func newOutageLog() *outageLog { return &outageLog{more: make(chan struct{}, 1)} }

func (l *outageLog) add(o Outage) {
	l.mu.Lock()
	l.all = append(l.all, o)
	l.mu.Unlock()
	select {
	case l.more <- struct{}{}:
	default:
	}
}

// await returns the outages once there are n.
func (l *outageLog) await(ctx context.Context, n int) ([]Outage, error) {
	for {
		l.mu.Lock()
		all := slices.Clone(l.all)
		l.mu.Unlock()
		if len(all) >= n {
			return all, nil
		}
		select {
		case <-l.more:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
