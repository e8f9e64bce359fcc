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

// withCard opens the card named by the flags, passes it to use, and always releases it.
func (f *cardFlags) withCard(ctx context.Context, needs transport.Needs, use func(*driver.Card) error, further ...driver.Option) error {
	opts := []driver.Option{driver.WithTimeout(f.timeout), driver.WithWorkers(needs.Workers), driver.WithFormat(needs.Format), driver.WithWarnings(f.warn)}
	if f.fixedWindow {
		opts = append(opts, driver.WithFixedWindow())
	}
	opts = append(opts, further...)
	if f.record == "" {
		return f.useCard(ctx, opts, use)
	}
	log := &linkLog{path: f.record}
	err := f.useCard(ctx, append(opts, driver.WithRecord(log)), use)
	return errors.Join(err, log.close())
}

// linkLog is the file of -record. It is created with the link: without a card, the log of an
// earlier session stays.
type linkLog struct {
	path   string
	file   *os.File
	buf    *bufio.Writer
	failed bool // Write has returned an error
}

func (l *linkLog) Write(p []byte) (n int, err error) {
	defer func() { l.failed = l.failed || err != nil }()
	if l.file == nil {
		file, err := os.Create(l.path)
		if err != nil {
			return 0, err
		}
		l.file, l.buf = file, bufio.NewWriter(file)
	}
	return l.buf.Write(p)
}

// close returns an error that Write has not returned.
func (l *linkLog) close() error {
	switch {
	case l.file == nil:
		return nil
	case l.failed:
		l.file.Close()
		return nil
	}
	return errors.Join(l.buf.Flush(), l.file.Close())
}

func (f *cardFlags) useCard(ctx context.Context, opts []driver.Option, use func(*driver.Card) error) error {
	card, err := f.open(ctx, opts)
	if err != nil {
		return err
	}
	// The first error is the one that explains the others.
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
