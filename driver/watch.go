package driver

// Looking at a card that another program drives. A card takes one host at a
// time, so the others see it through that host: it answers their register reads
// with what the card answers, in the frames of the link.

import (
	"context"
	"errors"

	"tributary/driver/frame"
	"tributary/driver/transport"
	"tributary/driver/wire"
)

// ServeReads lets the program at the other end of conn look at the card while
// this one drives it: opened there WithReadOnly, conn leads to the same card. All
// registers can be read; a write is answered busy, and all other frames are
// passed over. The reads go among this program's own register accesses; each is
// a frame of a header alone, there and back.
//
// It returns nil when the other end has hung up, else why it ended: ctx's error
// or the card's. By then conn is closed. One Card can be looked at over any
// number of links at once.
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

// appendAnswer appends the frame that answers one of a program that looks at the
// card, if there is one. An error is the card's, or ctx's.
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
