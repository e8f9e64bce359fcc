package elastic

// The card of this member's rack, as long as it can be reached (SPEC.md, section 7).

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"tributary/driver"
)

// Times of a card.
const (
	openTime    = 5 * time.Second  // for one attempt to open it
	searchPause = time.Second      // between attempts
	firstPause  = time.Second      // after a failure of the card in a job; then twice as long
	longPause   = time.Minute      // at most
	cardTimeout = 10 * time.Minute // how long the card's calls wait for members; contexts end them before
)

// holder keeps the card open, and opens it again.
type holder struct {
	name string
	opts []driver.Option
	keep *keeper
	stop context.CancelFunc
	wg   sync.WaitGroup

	mu   sync.Mutex
	card *driver.Card // nil: not reached
	bad  chan error   // capacity 1: the card failed in a job
}

// hold starts to look for a card.
func hold(name string, opts []driver.Option, k *keeper) *holder {
	h := &holder{name: name, opts: append([]driver.Option{driver.WithTimeout(cardTimeout)}, opts...), keep: k, bad: make(chan error, 1)}
	var life context.Context
	life, h.stop = context.WithCancel(context.Background())
	h.wg.Go(func() { h.run(life) })
	return h
}

// current returns the open card, or nil.
func (h *holder) current() *driver.Card {
	if h == nil {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.card
}

// blame closes a card because it failed, unless another one is open by now.
func (h *holder) blame(c *driver.Card, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.card != c {
		return
	}
	select {
	case h.bad <- err:
	default:
	}
}

func (h *holder) close() {
	if h != nil {
		h.stop()
		h.wg.Wait()
	}
}

func (h *holder) run(life context.Context) {
	pause, told := firstPause, ""
	for life.Err() == nil {
		card, err := h.open(life)
		if err != nil {
			if text := err.Error(); text != told && life.Err() == nil {
				told = text
				h.keep.cfg.Warn(fmt.Sprintf("the card of rack %s is not used: %v", h.keep.own.Rack, err))
			}
			sleep(life, searchPause)
			continue
		}
		told = ""
		h.set(card)
		select {
		case <-card.Done():
			h.unset(card, card.Err())
		case err := <-h.bad:
			h.unset(card, err)
			sleep(life, pause)
			pause = min(2*pause, longPause)
		case <-life.Done():
			h.unset(card, nil)
		}
	}
}

func sleep(life context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-life.Done():
	}
}

func (h *holder) open(life context.Context) (*driver.Card, error) {
	ctx, cancel := context.WithTimeout(life, openTime)
	defer cancel()
	return driver.Open(ctx, h.name, h.opts...)
}

func (h *holder) set(c *driver.Card) {
	h.mu.Lock()
	h.card = c
	h.mu.Unlock()
	i := c.Info()
	h.keep.setCard(&i)
}

func (h *holder) unset(c *driver.Card, why error) {
	h.mu.Lock()
	h.card = nil
	select {
	case <-h.bad: // of this card
	default:
	}
	h.mu.Unlock()
	h.keep.setCard(nil)
	if why != nil {
		h.keep.cfg.Warn(fmt.Sprintf("the card of rack %s is no longer used: %v", h.keep.own.Rack, why))
	}
	_ = c.Close()
}

// innocent reports whether an error of a card's job comes from its members, not from the card.
func innocent(err error) bool {
	return errors.As(err, new(*driver.MemberLostError)) || errors.As(err, new(*driver.MemberFailedError)) ||
		errors.As(err, new(*driver.StoppedError)) || errors.As(err, new(*driver.GivenUpError)) ||
		errors.As(err, new(*driver.NotStartedError)) || errors.As(err, new(*driver.FullError)) ||
		errors.As(err, new(*driver.CallsDifferError)) || errors.As(err, new(*driver.JoinError))
}
