package ring

import (
	"cmp"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
)

// bells are the doorbells on a data connection: a byte of any value, in either direction. One bell wakes
// all who wait at this end, for bytes or for room.
type bells struct {
	conn net.Conn
	raw  syscall.RawConn

	mu        sync.Mutex
	changed   sync.Cond // a bell has come, or err is set
	listening bool      // somebody listens at the connection
	err       error     // of the connection
}

// attach gives the bells their connection.
func (b *bells) attach(conn net.Conn) error {
	raw, err := rawOf(conn)
	b.conn, b.raw = conn, raw
	return err
}

func (b *bells) close() error {
	var err error
	if b.conn != nil {
		err = b.conn.Close()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err == nil {
		b.err = net.ErrClosed
	}
	b.changed.Broadcast()
	return err
}

// ring rings if the other side waits, by its wish.
func (b *bells) ring(wish *atomic.Uint32) {
	if wish.Load() != 0 && wish.Swap(0) != 0 && b.raw != nil {
		_ = b.raw.Write(func(fd uintptr) bool { // an error shows in who listens
			strike(fd)
			return true
		})
	}
}

// await looks until there are bytes, and waits for bells in between. It returns what look returns, or the
// error of the connection. The wish is set before the last look, and the other side reads the wish after
// it has moved its position: so no bell is missed. Whoever comes first listens, and wakes the other one.
func (b *bells) await(wish *atomic.Uint32, look func() (int, error)) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for {
		wish.Store(1)
		if n, err := look(); n > 0 || err != nil {
			wish.Store(0)
			return n, err
		}
		switch {
		case b.err != nil:
			return 0, b.err
		case b.listening:
			b.changed.Wait()
		default:
			b.listen()
		}
	}
}

// mostBells is how many bells are taken at once.
const mostBells = 64

// listen waits for a bell. It releases the mutex meanwhile.
func (b *bells) listen() {
	b.listening = true
	b.mu.Unlock()
	var ended error
	err := b.raw.Read(func(fd uintptr) bool {
		var heard bool
		heard, ended = hear(fd)
		return heard || ended != nil
	})
	b.mu.Lock()
	b.listening = false
	if b.err == nil {
		b.err = cmp.Or(err, ended)
	}
	b.changed.Broadcast()
}
