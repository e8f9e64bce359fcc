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
		return useCard(ctx, f.card, opts, use)
	}
	file, err := os.Create(f.record)
	if err != nil {
		return err
	}
	log := bufio.NewWriter(file)
	err = useCard(ctx, f.card, append(opts, driver.WithRecord(log)), use)
	return errors.Join(err, log.Flush(), file.Close())
}

func useCard(ctx context.Context, name string, opts []driver.Option, use func(*driver.Card) error) error {
	card, err := driver.Open(ctx, name, opts...)
	if err != nil {
		return err
	}
	// What went wrong first is what a reader needs to know.
	err = use(card)
	return cmp.Or(err, card.Close())
}
