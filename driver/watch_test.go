package driver_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"tributary/driver"
	"tributary/driver/transport/pipe"
	"tributary/driver/wire"
)

// look opens a card through the program that drives it.
func look(t *testing.T, ctx context.Context, card *driver.Card) (seen *driver.Card, served <-chan error) {
	t.Helper()
	here, there := pipe.New(4 << 10)
	ended := make(chan error, 1)
	go func() { ended <- card.ServeReads(ctx, there) }()
	return open(t, here, driver.WithReadOnly()), ended
}

// TestServeReads has two programs read a card while a third reduces on it. They must see the
// same values, and cannot change anything.
func TestServeReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := testContext(t)
		card := openSmall(t)
		job := configure(t, card, driver.JobConfig{Workers: 3})
		first, firstEnded := look(t, ctx, card)
		second, secondEnded := look(t, ctx, card)
		if got, want := first.Info().ConfigHash, card.Info().ConfigHash; got != want {
			t.Errorf("configuration hash %x, want %x", got, want)
		}

		sum, inputs := make([]float32, 5000), arrays(1, 3, 5000)
		reduced := make(chan error)
		go func() { reduced <- job.Reduce(ctx, sum, inputs) }()
		for running := true; running; {
			select {
			case err := <-reduced:
				if err != nil {
					t.Fatal(err)
				}
				running = false
			default:
				if _, err := second.Counters(ctx); err != nil {
					t.Fatal(err)
				}
			}
		}
		sameBits(t, "reduced while it was looked at", sum, treeSum(inputs, firstPorts(3), 4))
		mine, err := card.Counters(ctx)
		if err != nil {
			t.Fatal(err)
		}
		theirs, err := first.Counters(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for i, c := range mine {
			if c.Name != "frames" && theirs[i] != c { // reads count as frames
				t.Errorf("they see %+v, the card's owner %+v", theirs[i], c)
			}
		}

		var refused *driver.RefusedError
		if _, err := first.ReadRegister(ctx, 0x3f8); !errors.As(err, &refused) || refused.Code != wire.CodeBadAddress {
			t.Errorf("a read where no register is: %v", err)
		}
		if _, err := first.WriteRegister(ctx, wire.RegReset, 0); !errors.Is(err, driver.ErrReadOnly) {
			t.Errorf("a write: %v", err)
		}
		if _, err := first.Configure(ctx, driver.JobConfig{}); !errors.Is(err, driver.ErrReadOnly) {
			t.Errorf("a job: %v", err)
		}

		first.Close()
		if err := <-firstEnded; err != nil {
			t.Errorf("the end of one who looked: %v", err)
		}
		if err := job.Close(ctx); err != nil {
			t.Fatal(err)
		}
		card.Close()
		if err := <-secondEnded; !errors.Is(err, driver.ErrClosed) {
			t.Errorf("the end of the card: %v", err)
		}
		<-second.Done()
	})
}

// TestServeReadsRefusesHosts checks that a program that opens such a link to use the card gets
// a BusyError.
func TestServeReadsRefusesHosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(testContext(t))
		card := openSmall(t)
		here, there := pipe.New(4 << 10)
		ended := make(chan error, 1)
		go func() { ended <- card.ServeReads(ctx, there) }()
		var busy *driver.RefusedError
		if _, err := driver.OpenConn(ctx, "test", here); !errors.As(err, &busy) || busy.Code != wire.CodeBusy {
			t.Errorf("opened to be used: %v", err)
		}
		if err := <-ended; err != nil {
			t.Errorf("the end of one who hung up: %v", err)
		}

		_, ended2 := look(t, ctx, card)
		cancel()
		if err := <-ended2; !errors.Is(err, context.Canceled) {
			t.Errorf("the end of the context: %v", err)
		}
	})
}

// TestReadOnlyTakesNothing checks that a card opened WithReadOnly has no owner.
func TestReadOnlyTakesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		card := openSmall(t, driver.WithReadOnly())
		owner, err := card.ReadRegister(testContext(t), wire.RegOwner)
		if err != nil || owner != 0 {
			t.Errorf("owner %x, %v", owner, err)
		}
	})
}
