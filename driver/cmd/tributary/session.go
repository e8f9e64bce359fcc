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
	file, err := os.Create(f.record)
	if err != nil {
		return err
	}
	log := bufio.NewWriter(file)
	err = f.useCard(ctx, append(opts, driver.WithRecord(log)), use)
	return errors.Join(err, log.Flush(), file.Close())
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
