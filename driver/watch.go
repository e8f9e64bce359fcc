package driver

// Read access to a card that another program drives. A card takes one host at a time, so other
// programs read it through that host. The host answers their register reads with the card's
// replies, in the frames of the link.

import (
	"context"
	"errors"

	"tributary/driver/frame"
	"tributary/driver/transport"
	"tributary/driver/wire"
)

// ServeReads gives the program at the other end of conn read access to this program's card.
// That program opens conn WithReadOnly. It can read all registers. A write gets the reply busy,
// and other frames are ignored. The reads share the link with this program's own accesses; each
// costs one header in each direction.
//
// ServeReads closes conn. It returns nil when the other end has hung up, else ctx's error or
// the card's. It can serve any number of links at once.
func (c *Card) ServeReads(ctx context.Context, conn transport.Conn) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer conn.Close()
	context.AfterFunc(ctx, func() { conn.Close() })
	go func() {
		select {
		case <-c.done:
			cancel()
		case <-ctx.Done():
		}
	}()

	scan := frame.NewScanner(frame.ToCard, 0)
	var f frame.Frame
	var answers []byte
	for {
		_, err := scan.Fill(conn)
		for answers = answers[:0]; err == nil && scan.Next(&f); {
			answers, err = c.appendAnswer(ctx, answers, f.Header)
		}
		if err == nil {
			_, err = conn.Write(answers)
		}
		switch {
		case c.Err() != nil:
			return c.Err()
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			return nil
		}
	}
}

// appendAnswer appends the reply to a frame of the other program, if it needs one. The error is
// the card's or ctx's.
func (c *Card) appendAnswer(ctx context.Context, answers []byte, h frame.Header) ([]byte, error) {
	reply := frame.Header{Kind: wire.KindReply, VID: h.VID, Length: h.Length, Code: wire.CodeBusy}
	switch h.Kind {
	case wire.KindRegWrite:
	case wire.KindRegRead:
		var refused *RefusedError
		value, err := c.ReadRegister(ctx, h.VID)
		switch {
		case errors.As(err, &refused):
			reply.Code = refused.Code
		case err != nil:
			return answers, err
		default:
			reply.Mask, reply.Code = value, wire.CodeDone
		}
	default:
		return answers, nil
	}
	return frame.Append(answers, &reply, nil), nil
}
