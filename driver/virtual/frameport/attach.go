package frameport

import (
	"errors"
	"fmt"
	"net"
)

// Attach makes a port at a socket of its own, and connects it to the port unix:PATH of a card or of another
// device: the other end of the cable. It is for devices that are no cards, such as package rc's hosts.
func Attach(own, path string) (Port, error) {
	conn, err := openUnix(own)
	if err != nil {
		return nil, err
	}
	port := conn.(*unixPort)
	peer := &net.UnixAddr{Name: path, Net: "unixgram"}
	if _, _, err := port.conn.WriteMsgUnix(nil, nil, peer); err != nil { // makes this end known
		return nil, errors.Join(fmt.Errorf("unix:%s: %w", path, err), port.Close())
	}
	port.peer.Store(peer)
	return port, nil
}
