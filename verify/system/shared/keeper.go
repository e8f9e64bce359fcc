package main

import (
	"context"
	"errors"
	"sync"
	"time"
)

// keeper keeps a process of a site running, and arms its kills.
type keeper struct {
	site        *site
	role, name  string
	environment []string

	mu      sync.Mutex
	changed sync.Cond
	started *process // the latest one
	process *process // ready and not known to be dead; nil while there is none
	kills   []kill   // of this round; the first one is armed
	timer   *time.Timer
	to      chan<- report // takes the events; nil: nobody
	closing bool
	ended   sync.WaitGroup
}

// report is an event of a process.
type report struct {
	event
	from *process
}

func newKeeper(s *site, role, name string, environment ...string) *keeper {
	k := &keeper{site: s, role: role, name: name, environment: environment}
	k.changed.L = &k.mu
	k.ended.Go(k.run)
	return k
}

// run starts one process after another.
func (k *keeper) run() {
	for {
		var p *process
		p, err := start(k.role, k.name, k.environment, k.site.log, func(e event) { k.take(p, e) })
		if err != nil {
			k.site.fail(err)
			return
		}
		k.mu.Lock()
		k.started = p
		if k.closing {
			p.in.Close()
		}
		k.mu.Unlock()
		var wait time.Duration
		select {
		case <-p.ready:
			k.enter(p)
			<-p.over
			wait = k.next()
		case <-p.over:
		}
		k.mu.Lock()
		closing := k.closing
		k.mu.Unlock()
		if closing {
			return
		}
		time.Sleep(wait)
	}
}

// enter makes a process the current one, and arms its kill.
func (k *keeper) enter(p *process) {
	k.mu.Lock()
	defer k.mu.Unlock()
	select {
	case <-p.over:
		return
	default:
	}
	k.process = p
	k.armLocked()
	k.changed.Broadcast()
}

// next passes on to the next kill, and returns when the next process starts.
func (k *keeper) next() (wait time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.kills) > 0 {
		wait = k.kills[0].restart
		k.kills = k.kills[1:]
	}
	return wait
}

// arm gives the processes of a round their kills, and their events a receiver.
func (k *keeper) arm(kills []kill, to chan<- report) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.kills, k.to = kills, to
	k.armLocked()
}

func (k *keeper) armLocked() {
	if k.timer != nil {
		k.timer.Stop()
	}
	switch p := k.process; {
	case p == nil:
	case len(k.kills) == 0:
		p.tell(order{Do: "arm"})
	case k.kills[0].phase == anytime:
		k.timer = time.AfterFunc(k.kills[0].after, func() {
			k.site.noteDeath(k.role)
			p.kill()
		})
	default:
		p.tell(order{Do: "arm", Phase: k.kills[0].phase, Count: k.kills[0].count})
	}
}

// take handles an event of a process.
func (k *keeper) take(p *process, e event) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch e.Is {
	case "dying":
		k.site.noteDeath(k.role)
	case "dead":
		k.site.noteDeath(k.role)
		k.site.noteEnd(k.role, e, k.closing)
		if k.process == p {
			k.process = nil
		}
	}
	if k.to != nil {
		k.to <- report{event: e, from: p}
	}
}

// current waits for a process that is ready.
func (k *keeper) current(ctx context.Context) (*process, error) {
	stop := context.AfterFunc(ctx, func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.changed.Broadcast()
	})
	defer stop()
	k.mu.Lock()
	defer k.mu.Unlock()
	for k.process == nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		k.changed.Wait()
	}
	return k.process, nil
}

// settle waits until everything that the current process has done is known.
func (k *keeper) settle() {
	k.mu.Lock()
	p := k.process
	k.mu.Unlock()
	if p != nil {
		p.ping()
	}
}

// close ends the process.
func (k *keeper) close() {
	k.mu.Lock()
	k.closing = true
	k.to = nil
	p := k.started
	k.mu.Unlock()
	if p != nil {
		p.stop()
	}
	k.ended.Wait()
}

// dump lets the process print its goroutines into the journal, and end.
func (k *keeper) dump() {
	k.mu.Lock()
	k.closing = true
	p := k.started
	k.mu.Unlock()
	if p != nil {
		p.dump()
	}
}

var errStopped = errors.New("the campaign was stopped")
