package frameport

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tributary/driver/virtual/clock"
	"tributary/driver/virtual/ethernet"
)

// cable is a port in memory.
type cable struct {
	in, out chan []byte
	closed  chan struct{}
}

func newCable() *cable { return &cable{make(chan []byte), make(chan []byte), make(chan struct{})} }

func (c *cable) Name() string { return "cable" }

func (c *cable) ReadFrame(frame []byte) (int, error) {
	select {
	case f := <-c.in:
		return copy(frame, f), nil
	case <-c.closed:
		return 0, io.ErrClosedPipe
	}
}

func (c *cable) WriteFrame(frame []byte) error {
	select {
	case c.out <- frame:
		return nil
	case <-c.closed:
		return io.ErrClosedPipe
	}
}

func (c *cable) Close() error {
	close(c.closed)
	return nil
}

// mirror is a device that sends each frame back, and one at port 1 when its clock has reached a second.
type mirror struct {
	now  uint64
	left []byte
	port int
	rang bool
	err  error
}

func (m *mirror) Cycles() uint64        { return m.now }
func (m *mirror) Ports() int            { return 2 }
func (m *mirror) Advance(cycles uint64) { m.now += cycles }
func (m *mirror) Err() error            { return m.err }

func (m *mirror) Receive(port int, frame []byte) {
	m.left, m.port = append([]byte(nil), frame...), port
	if string(frame) == "fail" {
		m.err = errFailed
	}
}

func (m *mirror) Send(dst []byte) ([]byte, int, bool) {
	if m.now >= clock.Rate && !m.rang {
		m.rang = true
		return append(dst, "alarm"...), 1, true
	}
	frame := m.left
	m.left = nil
	return append(dst, frame...), m.port, frame != nil
}

var errFailed = errors.New("failed")

// serve runs Serve for a mirror.
func serve(ctx context.Context, ports ...*cable) (ended chan error) {
	ended = make(chan error, 1)
	var all []Port
	for _, p := range ports {
		all = append(all, p)
	}
	var device ethernet.Device = &mirror{}
	go func() { ended <- Serve(ctx, device, clock.Start(device), all) }()
	return ended
}

// TestFramesAndTime: frames leave at their ports, also when only time passes. At the end all ports are
// closed.
func TestFramesAndTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		a, b := newCable(), newCable()
		began := time.Now()
		ended := serve(ctx, a, b)
		a.in <- []byte("one")
		assert.Equal(t, "one", string(<-a.out))
		b.in <- []byte("two")
		assert.Equal(t, "two", string(<-b.out))
		assert.Equal(t, "alarm", string(<-b.out))
		late := time.Since(began) - time.Second
		assert.True(t, late >= 0 && late <= clock.Tick, "%v late", late)
		cancel()
		require.NoError(t, <-ended)
		<-a.closed
		<-b.closed
	})
}

// TestABlockedPort loses what is too much for it, and holds up no other.
func TestABlockedPort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		a, b := newCable(), newCable()
		ended := serve(ctx, a, b)
		for n := range maxWaiting + 10 {
			a.in <- []byte{byte(n), byte(n >> 8)}
			synctest.Wait()
		}
		b.in <- []byte("through")
		assert.Equal(t, "through", string(<-b.out))
		for n := range maxWaiting + 1 { // one was on its way
			require.Equal(t, []byte{byte(n), byte(n >> 8)}, <-a.out)
		}
		synctest.Wait()
		select {
		case f := <-a.out:
			t.Errorf("%x", f)
		default:
		}
		cancel()
		require.NoError(t, <-ended)
	})
}

// TestFailures: a port that fails, and a card that does, end Serve and all ports.
func TestFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := newCable(), broken{newCable()}
		ended := make(chan error, 1)
		go func() {
			device := &mirror{}
			ended <- Serve(context.Background(), device, clock.Start(device), []Port{a, b})
		}()
		assert.ErrorIs(t, <-ended, errFailed)
		<-a.closed
		<-b.closed

		c := newCable()
		ended = serve(context.Background(), c)
		c.in <- []byte("fail")
		assert.ErrorIs(t, <-ended, errFailed)
		<-c.closed
	})
}

// broken is a port that cannot be read.
type broken struct{ *cable }

func (broken) ReadFrame([]byte) (int, error) { return 0, errFailed }
