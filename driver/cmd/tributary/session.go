package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"os"

	"tributary/driver"
	"tributary/driver/transport"
)

// withCard opens the card that the flags name, hands it to use, and gives it
// back whatever happened.
func (f *cardFlags) withCard(ctx context.Context, needs transport.Needs, use func(*driver.Card) error) error {
	opts := []driver.Option{driver.WithTimeout(f.timeout), driver.WithWorkers(needs.Workers), driver.WithFormat(needs.Format)}
	if f.record == "" {
		return f.useCard(ctx, opts, use)
	}
	log := &linkLog{path: f.record}
	err := f.useCard(ctx, append(opts, driver.WithRecord(log)), use)
	return errors.Join(err, log.close())
}

// linkLog is the file of -record. It comes into being with the link: where there
// is no card, the log of an earlier one stays.
type linkLog struct {
	path string
	file *os.File
	buf  *bufio.Writer
}

func (l *linkLog) Write(p []byte) (int, error) {
	if l.file == nil {
		file, err := os.Create(l.path)
		if err != nil {
			return 0, err
		}
		l.file, l.buf = file, bufio.NewWriter(file)
	}
	return l.buf.Write(p)
}

func (l *linkLog) close() error {
	if l.file == nil {
		return nil
	}
	return errors.Join(l.buf.Flush(), l.file.Close())
}

func (f *cardFlags) useCard(ctx context.Context, opts []driver.Option, use func(*driver.Card) error) error {
	card, err := f.open(ctx, opts)
	if err != nil {
		return err
	}
	// What went wrong first is what a reader needs to know.
	err = use(card)
	return cmp.Or(err, card.Close())
}

func (f *cardFlags) open(ctx context.Context, opts []driver.Option) (*driver.Card, error) {
	if f.dial == nil {
		return driver.Open(ctx, f.card, opts...)
	}
	conn, err := f.dial(ctx)
	if err != nil {
		return nil, &driver.NoCardError{Name: f.card, Err: err}
	}
	return driver.OpenConn(ctx, f.card, conn, opts...)
}
