//go:build !linux

package daemon

import (
	"errors"
	"net"
)

// memory is what a session shares with the daemon: on Linux alone.
type memory struct{}

func newMemory(int) (*memory, error)  { return nil, errors.New("no shared memory on this system") }
func (m *memory) send(net.Conn) error { return nil }
func (m *memory) bytes() []byte       { return nil }
func (m *memory) enter() bool         { return true }
func (m *memory) leave()              {}
func (m *memory) end()                {}
