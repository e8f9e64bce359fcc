package transport

// The schemes tcp and unix: cards that are running already.

import (
	"context"
	"errors"
	"fmt"
	"net"

	"tributary/driver/shell"
)

func openTCP(ctx context.Context, r Request) (Conn, error) {
	if _, _, err := net.SplitHostPort(r.Address); err != nil {
		return nil, fmt.Errorf("%q is no HOST:PORT", r.Address)
	}
	return dial(ctx, "tcp", r.Address)
}

func openUnix(ctx context.Context, r Request) (Conn, error) {
	if r.Address == "" {
		return nil, errors.New("the name lacks the path of the card's socket, as in unix:PATH")
	}
	return dial(ctx, "unix", r.Address)
}

func dial(ctx context.Context, network, address string) (Conn, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, network, address)
	if err != nil {
		return nil, fmt.Errorf("%w; see whether a card listens there (`tributary sim DIR -listen %s` starts one)", err, shell.Quote(network+":"+address))
	}
	return conn, nil
}
