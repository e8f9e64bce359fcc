package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tributary/driver"
)

// life is a member's part in a job, from its join to its finish or its end.
type life struct {
	Number  int       `json:"number"` // different from all others of a round
	Rank    int       `json:"rank"`
	Job     jobPlan   `json:"job"`
	Ticket  string    `json:"ticket,omitempty"` // empty: makes the job
	Returns bool      `json:"returns,omitempty"`
	Began   time.Time `json:"-"`
}

// member takes part in jobs, one after another.
func (r *role) member() error {
	r.registerSession()
	r.report(event{Is: "ready"})
	r.obey(func(l *life) {
		m := &membership{role: r, life: l, stage: "open"}
		err := m.take()
		if m.card != nil {
			m.card.Close()
		}
		if err == nil {
			r.report(event{Is: "finished", Life: l.Number, Outages: m.outages})
			return
		}
		e := event{Is: "failed", Life: l.Number, Stage: m.stage, Text: err.Error(), Outages: m.outages}
		e.Kind, e.Ranks = kindOf(err)
		r.report(e)
	})
	return nil
}

// membership is a life under way.
type membership struct {
	*role
	*life
	stage   string
	card    *driver.Card
	member  *driver.Member
	outages int
}

// take takes the part: join, calls, finish.
func (m *membership) take() error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	var err error
	if m.card, err = m.openSession(ctx); err != nil {
		return err
	}
	m.stage = "join"
	if err := m.sit(ctx); err != nil {
		return err
	}
	m.report(event{Is: "seated", Life: m.Number, Ticket: m.member.Job().Ticket()})
	m.stage = "start"
	if err := m.member.Job().AwaitMembers(ctx); err != nil {
		return err
	}
	m.stage = "call"
	if err := m.reduce(); err != nil {
		return err
	}
	m.stage = "finish"
	ctx, cancel = context.WithTimeout(context.Background(), limit)
	defer cancel()
	err = m.member.Job().Close(ctx)
	m.outages = m.member.Job().Outages()
	return err
}

// sit makes the job, or joins it. A seat of a member that was killed may take a moment to be free.
func (m *membership) sit(ctx context.Context) error {
	if m.Ticket == "" {
		cfg := m.Job.config()
		cfg.Here, cfg.Queue, cfg.Wait = []int{m.Rank}, true, 2*limit
		job, err := m.card.Configure(ctx, cfg)
		if err == nil {
			m.member = job.Member(m.Rank)
		}
		return err
	}
	for {
		var err error
		m.member, err = m.card.Join(ctx, m.Ticket, m.Rank)
		if kind, _ := kindOf(err); !m.Returns || kind != "STARTED" && kind != "TAKEN" {
			return err
		}
		select {
		case <-time.After(retry):
		case <-ctx.Done():
			return err
		}
	}
}

// started is a call under way.
type started struct {
	call    int
	began   time.Time
	buffer  []float32
	pending *driver.Pending
	cancel  context.CancelFunc
}

// reduce makes the member's calls, several at a time. A member that returns does not know how many
// there were before, and makes some more.
func (m *membership) reduce() error {
	a := array{m.Job.Seed, m.Job.Workers}
	var under []started
	defer func() {
		for _, s := range under {
			s.cancel()
		}
	}()
	calls := len(m.Job.Calls)
	if m.Returns && m.Job.Partial {
		calls = (calls + 1) / 2
	}
	for call := 0; call < calls || len(under) > 0; {
		if call < calls && len(under) < m.Job.Depth {
			s := started{call: call, began: time.Now(), buffer: a.fill(newStamp(m.Number, call), m.Rank, m.Job.Calls[call])}
			var ctx context.Context
			ctx, s.cancel = context.WithTimeout(context.Background(), limit)
			var err error
			if s.pending, err = m.member.StartAllReduce(ctx, s.buffer); err != nil {
				s.cancel()
				return err
			}
			under = append(under, s)
			call++
			continue
		}
		if err := m.finish(a, under[0]); err != nil {
			return err
		}
		under = under[1:]
	}
	return nil
}

// finish waits for a call and checks its sum.
func (m *membership) finish(a array, s started) error {
	defer s.cancel()
	err := s.pending.Wait(context.Background())
	if took := time.Since(s.began); took > limit+lateness {
		return fmt.Errorf("%w: call %d took %s, longer than its %s: %w", errWrong, s.call, took, limit, err)
	}
	if err != nil {
		return err
	}
	sum, err := a.check(s.buffer, s.pending.Partials())
	if err != nil {
		return fmt.Errorf("%w: call %d: %w", errWrong, s.call, err)
	}
	m.report(event{Is: "summed", Life: m.Number, Call: s.call, Sum: &sum})
	return nil
}

// lateness is how long after its deadline a call may return on a busy machine.
const lateness = 10 * time.Second

// errWrong is the error of a call that breaks its contract.
var errWrong = errors.New("wrong")

// kindOf returns the kind of a call's error, and the ranks that it names.
func kindOf(err error) (kind string, ranks []int) {
	var memberLost *driver.MemberLostError
	var resultLost *driver.ResultLostError
	var differ *driver.CallsDifferError
	var never *driver.NotStartedError
	var evicted *driver.EvictedError
	var lost *driver.LostError
	var died *driver.DiedError
	var refused *driver.JoinError
	var ended *driver.EndedError
	switch {
	case err == nil:
	case errors.Is(err, errWrong):
		kind = "wrong"
	case errors.As(err, &memberLost):
		return "MemberLostError", memberLost.Ranks
	case errors.As(err, &resultLost):
		kind = "ResultLostError"
	case errors.As(err, &differ):
		return "CallsDifferError", differ.Ranks
	case errors.As(err, &never):
		return "NotStartedError", never.Missing
	case errors.As(err, &evicted):
		kind = "EvictedError"
	case errors.As(err, &lost):
		kind = "LostError"
	case errors.As(err, &died):
		kind = "DiedError"
	case errors.As(err, &refused):
		kind = refused.Reason.String()
	case errors.As(err, &ended):
		kind = "EndedError"
	default:
		kind = "other"
	}
	return kind, ranks
}
