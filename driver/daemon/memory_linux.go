package daemon

import (
	"fmt"
	"net"
	"sync"

	"golang.org/x/sys/unix"
)

// memory is what a session shares with the daemon; nil without. The daemon unmaps it when the session
// has ended and nothing in it is used.
type memory struct {
	fd int

	mu    sync.Mutex
	data  []byte
	users int
	ended bool
}

// newMemory makes memory that no client can shrink: the daemon would die of a fault otherwise.
func newMemory(size int) (*memory, error) {
	fd, err := unix.MemfdCreate("tributary", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, fmt.Errorf("no shared memory: %w", err)
	}
	m := &memory{fd: fd}
	if err = unix.Ftruncate(fd, int64(size)); err == nil {
		_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_GROW|unix.F_SEAL_SHRINK|unix.F_SEAL_SEAL)
	}
	if err == nil {
		m.data, err = unix.Mmap(fd, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	}
	if err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("no shared memory: %w", err)
	}
	return m, nil
}

// send gives the memory to the client, over the data connection. The caller has entered.
func (m *memory) send(conn net.Conn) error {
	u, ok := conn.(*net.UnixConn)
	if !ok {
		return fmt.Errorf("the data connection is %T, which carries no descriptor", conn)
	}
	_, _, err := u.WriteMsgUnix([]byte{0}, unix.UnixRights(m.fd), nil)
	return err
}

// bytes returns the memory; nil without.
func (m *memory) bytes() []byte {
	if m == nil {
		return nil
	}
	return m.data
}

// enter notes a use of the memory, and leave its end. Nobody may enter once the session has ended.
func (m *memory) enter() bool {
	if m == nil {
		return true
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ended {
		return false
	}
	m.users++
	return true
}

func (m *memory) leave() {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.users--
	m.unmapUnused()
}

// end notes the end of the session.
func (m *memory) end() {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ended = true
	m.unmapUnused()
}

// unmapUnused frees the pages as well: a client may keep the memory, but not at the daemon's cost.
func (m *memory) unmapUnused() {
	if m.ended && m.users == 0 {
		_ = unix.Fallocate(m.fd, unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, 0, int64(len(m.data)))
		_ = unix.Munmap(m.data)
		unix.Close(m.fd)
	}
}
