package main

// #include "shim.h"
import "C"

import (
	"net"
	"syscall"

	"tributary/driver/transport/serve"
)

// A forked child has copies of this process's sockets, and Go does not run there to close them. While the
// child lives, nobody would notice that this process was killed: daemons and clients see no end of the
// connections, and no other process can listen at the address of a server. So C closes, in the child, the
// sockets that have the addresses of daemons.

func init() {
	serve.Dialed = func(conn net.Conn) { closeInChildren(conn, true) }
}

// closeInChildren closes the sockets of forked children that have an end at the address of s: at that of its
// peer, or at its own.
func closeInChildren(s any, peer bool) {
	holder, ok := s.(syscall.Conn)
	if !ok {
		return
	}
	raw, err := holder.SyscallConn()
	if err != nil {
		return // it is closed
	}
	_ = raw.Control(func(fd uintptr) { C.close_in_children(C.int(fd), C.bool(peer)) })
}
