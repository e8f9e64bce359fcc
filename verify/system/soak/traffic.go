package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"tributary/verify/system/frames"
)

// traffic are frames of another protocol from each host to the next, through a card in path. Each that
// comes must be one that was sent, byte for byte.
type traffic struct {
	hosts   []*frames.Host
	came    atomic.Int64
	end     context.CancelFunc
	running sync.WaitGroup

	mu  sync.Mutex
	err error
}

// pause is the time between a host's frames.
const pause = 100 * time.Millisecond

func newTraffic(hosts []*frames.Host) *traffic {
	ctx, end := context.WithCancel(context.Background())
	t := &traffic{hosts: hosts, end: end}
	for i, h := range hosts {
		t.running.Go(func() { t.receive(ctx, h) })
		if len(hosts) > 1 {
			t.running.Go(func() { t.send(ctx, i) })
		}
	}
	return t
}

func (t *traffic) stop() {
	if t != nil {
		t.end()
		t.running.Wait()
	}
}

// failure returns what was wrong with a frame.
func (t *traffic) failure() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.err
}

func (t *traffic) send(ctx context.Context, from int) {
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for n := uint32(0); ; n++ {
		select {
		case <-tick.C:
			_ = t.hosts[from].Send(t.frame(from, n)) // a closed cable loses it
		case <-ctx.Done():
			return
		}
	}
}

// frame returns the n-th frame of a host.
func (t *traffic) frame(from int, n uint32) []byte {
	data := bytes.Repeat(binary.BigEndian.AppendUint32([]byte{byte(from)}, n), 1+int(n%50))
	return frames.Strange(t.hosts[from].MAC, t.hosts[(from+1)%len(t.hosts)].MAC, data...)
}

// receive compares the frames that a host gets.
func (t *traffic) receive(ctx context.Context, h *frames.Host) {
	for {
		select {
		case f := <-h.Others:
			if binary.BigEndian.Uint16(f[12:]) == 0x88b5 {
				t.judge(f)
			}
		case <-ctx.Done():
			return
		}
	}
}

func (t *traffic) judge(f []byte) {
	from, n := int(f[14]), binary.BigEndian.Uint32(f[15:])
	if from < len(t.hosts) && bytes.Equal(f, t.frame(from, n)) {
		t.came.Add(1)
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.err = fmt.Errorf("a frame passed the card that nobody sent: %x", f)
}
