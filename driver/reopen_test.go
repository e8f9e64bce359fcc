package driver_test

// Cards that the driver opens again although no job waits for them.

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tributary/driver"
	"tributary/driver/model"
	"tributary/driver/transport"
	"tributary/driver/wire"
)

// returning returns the name of a card that is there whenever shut is not set, and a function that ends its
// link.
func returning(t *testing.T, shut *atomic.Bool) (name string, cut func()) {
	card, err := model.NewCard(small)
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.Mutex
	var link transport.Conn
	return comes(func(int) (transport.Conn, error) {
		if shut.Load() {
			return nil, errors.New("not yet")
		}
		link = connectNext(t, card, &serving)
		return link, nil
	}), func() { link.Close() }
}

// TestReopen cuts a card off again and again, idle and with a job that does not carry on. The job ends, and
// the next one works. The times are those of a bubble.
func TestReopen(t *testing.T) {
	bubble(func(t *testing.T) {
		ctx := testContext(t)
		var shut atomic.Bool
		name, cut := returning(t, &shut)
		told := make(chan *driver.DiedError, 2)
		card := openName(t, name, driver.WithReopen(func(died *driver.DiedError) { told <- died }))
		in := arrays(3, 4, 100)
		want := treeSum(in, firstPorts(4), small.Ports)
		for round := range 4 {
			var job *driver.Job
			if round%2 == 1 {
				job = configure(t, card, driver.JobConfig{})
			}
			shut.Store(true)
			cut()
			if died := <-told; died == nil || !card.Away() || card.Err() != nil {
				t.Fatalf("the driver told %v; away: %t, error: %v", died, card.Away(), card.Err())
			}
			if job != nil {
				wantError[*driver.DiedError](t, job.Reduce(ctx, make([]float32, 100), in))
			}
			time.AfterFunc(10*time.Second, func() { shut.Store(false) })
			early := make(chan error, 1)
			go func() { // a job that is configured while the card is away waits for it
				j, err := card.Configure(ctx, driver.JobConfig{})
				if err == nil {
					sum := make([]float32, 100)
					if err = j.Reduce(ctx, sum, in); err == nil {
						sameBits(t, "sum", sum, want)
						err = j.Close(ctx)
					}
				}
				early <- err
			}()
			began := time.Now()
			if died := <-told; died != nil || card.Away() {
				t.Fatalf("the driver told %v; away: %t", died, card.Away())
			}
			if took := time.Since(began); took < 9*time.Second || took > 12*time.Second {
				t.Errorf("the driver found the card after %s", took)
			}
			if err := <-early; err != nil {
				t.Errorf("round %d: %v", round, err)
			}
		}
	})(t)
}

// TestReopenClosed closes a card while the driver looks for it.
func TestReopenClosed(t *testing.T) {
	bubble(func(t *testing.T) {
		var shut atomic.Bool
		name, cut := returning(t, &shut)
		told := make(chan *driver.DiedError, 1)
		card := openName(t, name, driver.WithReopen(func(died *driver.DiedError) { told <- died }))
		shut.Store(true)
		cut()
		<-told
		began := time.Now()
		card.Close()
		if took := time.Since(began); took > opening {
			t.Errorf("it took %s", took)
		}
		if err := card.Err(); !errors.Is(err, driver.ErrClosed) {
			t.Errorf("got %v", err)
		}
	})(t)
}

// TestReopenFindsAnother: a card with another configuration does not replace the one that has gone.
func TestReopenFindsAnother(t *testing.T) {
	bubble(func(t *testing.T) {
		first := serve(t, small, 4000)
		card := openName(t, comes(func(n int) (transport.Conn, error) {
			if n == 0 {
				return first, nil
			}
			other := small
			other.Window = 2
			return serve(t, other, 4000), nil
		}), driver.WithReopen(nil))
		first.Close()
		<-card.Done()
		wantError[*driver.OtherCardError](t, card.Err(), "another card replies")
		if _, err := card.ReadRegister(testContext(t), wire.RegLanes); err == nil {
			t.Error("a register of another card was read")
		}
	})(t)
}

// TestReopenNotAtOpen: a card that goes while it is opened is an error of Open.
func TestReopenNotAtOpen(t *testing.T) {
	bubble(func(t *testing.T) {
		name := comes(func(int) (transport.Conn, error) { return &dying{serve(t, small, 4000), 30, errCut}, nil })
		_, err := driver.Open(testContext(t), name, driver.WithReopen(nil))
		wantError[*driver.NoCardError](t, err, "it disconnected while the driver opened it")
	})(t)
}
