package elastic

// This member's part in the engine: its registration, and the plans while it leads (SPEC.md, sections 3 and 4).

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"tributary/driver"
	"tributary/driver/collective/membership"
)

// Times of a keeper.
const (
	probeTime = 2 * time.Second        // how long the engine may take for an answer; how often it is asked
	retryTime = 100 * time.Millisecond // between attempts to reach it
	warnTime  = 2 * time.Second        // after which a wait is worth a warning; then after twice as long
)

// keeper runs in the background from Join to Close.
type keeper struct {
	engine membership.Engine
	cfg    *Config
	prefix string // of all keys

	life context.Context
	die  context.CancelFunc
	wg   sync.WaitGroup
	kick chan struct{} // capacity 1: own has changed

	mu      sync.Mutex
	own     registration
	former  []string // the incarnations before evictions
	evicted uint64   // the generation that evicted it; 0: none since the last call of taken
	first   uint64   // the first generation that has this incarnation; 0: none yet
	view    view
	changed chan struct{} // closed and replaced with view or trouble
	trouble error         // of the engine; nil while it answers
	refused error         // why this member cannot be in the group

	// Of the goroutine.
	joined   time.Time
	forgot   time.Time // when the engine was seen to have lost the newest plan; zero: it has it
	warned   map[string]bool
	lease    membership.Lease
	holds    int64 // the lease of the registration in the engine; 0: not registered yet
	settings int64 // the revision of the settings that are this member's
}

// view is the state of the group's keys.
type view struct {
	plan   Plan // generation 0: none
	roster map[string]registration
}

// complete reports whether all members of the plan are registered.
func (v *view) complete() bool {
	return !slices.ContainsFunc(v.plan.Members, func(m Member) bool { return v.roster[m.ID].Incarnation != m.Incarnation })
}

func newKeeper(e membership.Engine, cfg *Config, self Self) *keeper {
	k := &keeper{
		engine: e, cfg: cfg, prefix: "tributary/" + cfg.Name + "/",
		kick: make(chan struct{}, 1), changed: make(chan struct{}), joined: time.Now(), warned: map[string]bool{},
	}
	k.own = registration{Member: Member{self.member(), rand.Text()}}
	k.own.Proof = cfg.proof(&k.own.Member)
	k.life, k.die = context.WithCancel(context.Background())
	k.wg.Go(k.run)
	return k
}

// proof is the HMAC of a member, or of the group alone, under the token.
func (c *Config) proof(m *Member) string {
	mac := hmac.New(sha256.New, []byte(c.Token))
	texts := []string{c.Name}
	if m != nil {
		texts = append(texts, m.ID, m.Incarnation, m.Address, m.Rack)
	}
	for _, t := range texts {
		fmt.Fprintf(mac, "%d %s", len(t), t)
	}
	return hex.EncodeToString(mac.Sum(nil))
}

// settings are the same for all members.
type settings struct {
	Expect    int
	OnFailure Policy
	Proof     string
}

// change changes the registration.
func (k *keeper) change(f func(r *registration)) {
	k.mu.Lock()
	f(&k.own)
	k.mu.Unlock()
	k.wake()
}

func (k *keeper) wake() {
	select {
	case k.kick <- struct{}{}:
	default:
	}
}

// need asks for a generation.
func (k *keeper) need(generation uint64) {
	k.change(func(r *registration) { r.Needs = max(r.Needs, generation) })
}

// setCard reports the card that this member reaches, or nil.
func (k *keeper) setCard(i *driver.Info) {
	if i != nil {
		i = new(*i)
		i.Name = "" // it differs from member to member
	}
	k.change(func(r *registration) { r.Card = i })
}

// run is the goroutine.
func (k *keeper) run() {
	for k.life.Err() == nil {
		again, revision, err := k.turn()
		k.note(err)
		switch {
		case errors.As(err, new(*membership.LeaseError)):
			k.lease = nil
		case err != nil:
			k.sleep(retryTime)
		case !again:
			k.await(revision)
		}
	}
}

// note keeps the engine's trouble.
func (k *keeper) note(err error) {
	if k.life.Err() != nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if (err == nil) != (k.trouble == nil) {
		k.tellLocked()
	}
	k.trouble = err
}

func (k *keeper) tellLocked() {
	close(k.changed)
	k.changed = make(chan struct{})
}

func (k *keeper) sleep(d time.Duration) {
	select {
	case <-time.After(d):
	case <-k.life.Done():
	}
}

// await returns when the group's keys or the registration have changed, or after a while.
func (k *keeper) await(revision int64) {
	ctx, cancel := context.WithTimeout(k.life, probeTime)
	defer cancel()
	over := make(chan struct{})
	go func() {
		defer close(over)
		select {
		case <-k.kick:
			cancel()
		case <-k.lease.Lost():
			cancel()
		case <-ctx.Done():
		}
	}()
	_ = k.engine.Await(ctx, k.prefix, revision) // the next turn asks again in any case
	cancel()
	<-over
}

// turn reads the group's keys and does what follows. again means that it has written.
func (k *keeper) turn() (again bool, revision int64, err error) {
	ctx, cancel := context.WithTimeout(k.life, probeTime)
	defer cancel()
	s, err := k.engine.Get(ctx, k.prefix)
	if err != nil {
		return false, 0, err
	}
	if err := k.needLease(ctx); err != nil {
		return false, 0, err
	}
	left, err := k.look(&s)
	if err != nil {
		return false, 0, err
	}
	for _, act := range []func(context.Context, *membership.Snapshot) (bool, error){k.settle, k.register} {
		if wrote, err := act(ctx, &s); wrote || err != nil {
			return true, 0, err
		}
	}
	again, err = k.lead(ctx, &s, left)
	return again, s.Revision, err
}

// needLease makes a lease if there is none.
func (k *keeper) needLease(ctx context.Context) (err error) {
	if k.lease != nil {
		select {
		case <-k.lease.Lost():
		default:
			return nil
		}
	}
	k.lease, err = k.engine.Grant(ctx, k.cfg.TTL)
	return err
}

// look reads a snapshot.
func (k *keeper) look(s *membership.Snapshot) (left map[string]bool, err error) {
	v := view{roster: map[string]registration{}}
	left = map[string]bool{}
	for _, key := range s.Keys {
		kind, rest, _ := strings.Cut(strings.TrimPrefix(key.Name, k.prefix), "/")
		switch kind {
		case "plan":
			err = json.Unmarshal([]byte(key.Value), &v.plan)
		case "left":
			left[rest] = true
		case "members":
			var r registration
			if err := json.Unmarshal([]byte(key.Value), &r); err != nil || r.ID != rest || r.Proof != k.cfg.proof(&r.Member) {
				k.warnOnce(fmt.Sprintf("registration %q is ignored: its proof is wrong; its member has another token", rest))
				continue
			}
			v.roster[rest] = r
		}
		if err != nil {
			return nil, fmt.Errorf("key %s of engine %s: %w", key.Name, k.engine.Name(), err)
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if known := &k.view.plan; v.plan.Generation < known.Generation {
		v.plan = *known
		k.own.Needs = max(k.own.Needs, known.Generation+1)
		if k.forgot.IsZero() {
			k.forgot = time.Now()
		}
	} else {
		k.forgot = time.Time{}
	}
	k.view = v
	k.placeLocked(&v.plan)
	k.tellLocked()
	return left, nil
}

// placeLocked notes the first plan with this member, and the first one without it.
func (k *keeper) placeLocked(p *Plan) {
	switch in := p.rank(k.own.Incarnation) >= 0; {
	case in && k.first == 0:
		k.first = p.Generation
	case !in && k.first > 0 && p.Generation > k.first:
		k.evicted = p.Generation
		k.first = 0
		k.former = append(k.former, k.own.Incarnation)
		k.own.Incarnation = rand.Text()
		k.own.Proof = k.cfg.proof(&k.own.Member)
		k.own.Ready, k.own.Job, k.own.Ticket = 0, 0, ""
	}
}

func (k *keeper) warnOnce(text string) {
	if !k.warned[text] {
		k.warned[text] = true
		k.cfg.Warn(text)
	}
}

// refuse notes that this member cannot be in the group.
func (k *keeper) refuse(reason Reason, text string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.refused = &RefusedError{k.cfg.Name, k.own.ID, reason, text}
	k.tellLocked()
}

// settle compares the settings. It writes them for a group without members, and where the engine has lost them.
func (k *keeper) settle(ctx context.Context, s *membership.Snapshot) (wrote bool, err error) {
	key := s.Find(k.prefix + "settings")
	if k.holds != 0 && key.Modified > 0 {
		return false, nil
	}
	own := settings{k.cfg.Expect, k.cfg.OnFailure, k.cfg.proof(nil)}
	var has settings
	if key.Modified > 0 {
		if err := json.Unmarshal([]byte(key.Value), &has); err != nil {
			return false, fmt.Errorf("key %s of engine %s: %w", key.Name, k.engine.Name(), err)
		}
	}
	if has == own {
		k.settings = key.Modified
		return false, nil
	}
	alone := !slices.ContainsFunc(s.Keys, func(m membership.Key) bool { return strings.HasPrefix(m.Name, k.prefix+"members/") })
	switch {
	case alone, k.holds != 0:
		return k.engine.Commit(ctx, membership.Txn{
			If:  []membership.Condition{{Key: key.Name, Modified: key.Modified}},
			Put: []membership.Put{{Key: key.Name, Value: encode(own)}},
		})
	case has.Proof != own.Proof:
		k.refuse(ReasonToken, "its token differs from the group's; give all members the same")
	default:
		k.refuse(ReasonSettings, fmt.Sprintf("it expects %d members and runs with policy %s, the group %d and %s; give all members the same", own.Expect, own.OnFailure, has.Expect, has.OnFailure))
	}
	return false, nil
}

// encode returns JSON.
func encode(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("elastic: %v", err)) // texts and numbers alone
	}
	return string(b)
}

// register brings the registration into the engine.
func (k *keeper) register(ctx context.Context, s *membership.Snapshot) (wrote bool, err error) {
	k.mu.Lock()
	own, former, refused := k.own, k.former, k.refused
	k.mu.Unlock()
	if refused != nil {
		return false, nil
	}
	key := s.Find(k.prefix + "members/" + own.ID)
	address := s.Find(k.prefix + "addresses/" + own.Address)
	value := encode(own)
	if key.Value == value && k.holds == k.lease.ID() {
		return false, nil
	}
	var has registration
	if key.Modified > 0 {
		_ = json.Unmarshal([]byte(key.Value), &has) // else it is another's
	}
	switch {
	case key.Modified > 0 && has.Incarnation != own.Incarnation && !slices.Contains(former, has.Incarnation):
		k.taken(ReasonID, fmt.Sprintf("another process is registered as %s; give it another ID, or end that process", own.ID))
		return false, nil
	case address.Modified > 0 && address.Value != own.ID:
		k.taken(ReasonAddress, fmt.Sprintf("%s listens at %s already; choose another address", address.Value, own.Address))
		return false, nil
	}
	t := membership.Txn{
		If:  []membership.Condition{{Key: key.Name, Modified: key.Modified}, {Key: address.Name, Modified: address.Modified}},
		Put: []membership.Put{{Key: key.Name, Value: value, Lease: k.lease.ID()}, {Key: address.Name, Value: own.ID, Lease: k.lease.ID()}},
	}
	if k.holds == 0 {
		t.If = append(t.If, membership.Condition{Key: k.prefix + "settings", Modified: k.settings})
	}
	wrote, err = k.engine.Commit(ctx, t)
	if wrote {
		k.holds = k.lease.ID()
	}
	return true, err
}

// taken refuses this member if another one has what it needs. A process that has ended keeps it for its
// lease's time.
func (k *keeper) taken(reason Reason, text string) {
	k.warnOnce(fmt.Sprintf("group %q: %s: %s", k.cfg.Name, reason, text))
	if k.holds != 0 || time.Since(k.joined) > 2*k.cfg.TTL {
		k.refuse(reason, text)
	}
}

// maxOps is how many conditions or deletes a transaction has (SPEC.md, section 4). etcd takes 128.
const maxOps = 100

// lead writes plans, if this member leads or can.
func (k *keeper) lead(ctx context.Context, s *membership.Snapshot, left map[string]bool) (wrote bool, err error) {
	k.mu.Lock()
	own, v, refused := k.own, k.view, k.refused
	k.mu.Unlock()
	if refused != nil {
		return false, nil
	}
	roster := slices.Collect(maps.Values(v.roster))
	leader := s.Find(k.prefix + "leader")
	mine := leader.Value == own.Incarnation
	knowing := v.plan.Generation > 0 || !slices.ContainsFunc(roster, func(r registration) bool { return r.Needs > 1 })
	switch {
	case leader.Modified == 0 && knowing:
		_, err := membership.Lead(ctx, k.engine, k.lease, leader.Name, own.Incarnation)
		return true, err
	case mine && !knowing:
		_, err := k.engine.Commit(ctx, membership.Txn{
			If:     []membership.Condition{{Key: leader.Name, Modified: leader.Modified}},
			Delete: []string{leader.Name},
		})
		return true, err
	case !mine, !k.forgot.IsZero() && time.Since(k.forgot) < k.cfg.TTL && !v.complete():
		return false, nil
	}
	next, ok := nextPlan(&v.plan, roster, left, k.cfg.Expect)
	if !ok {
		return false, nil
	}
	plan := s.Find(k.prefix + "plan")
	t := membership.Txn{
		If:  []membership.Condition{{Key: leader.Name, Modified: leader.Modified}, {Key: plan.Name, Modified: plan.Modified}},
		Put: []membership.Put{{Key: plan.Name, Value: encode(next)}},
	}
	for incarnation := range left {
		if len(t.Delete) < maxOps {
			t.Delete = append(t.Delete, k.prefix+"left/"+incarnation)
		}
	}
	for _, m := range v.plan.Members { // one that the plan drops may have registered again
		if next.rank(m.Incarnation) < 0 && len(t.If) < maxOps {
			key := s.Find(k.prefix + "members/" + m.ID)
			t.If = append(t.If, membership.Condition{Key: key.Name, Modified: key.Modified})
		}
	}
	_, err = k.engine.Commit(ctx, t)
	return true, err
}

// wait returns when what is waited for is there: when f returns "". Otherwise f returns what that is, for
// warnings and the error. Errors: WaitError, RefusedError, ErrClosed.
func (k *keeper) wait(ctx context.Context, f func(v *view) (waitsFor string)) error {
	for pause := warnTime; ; {
		k.mu.Lock()
		v, changed, trouble, refused := k.view, k.changed, k.trouble, k.refused
		k.mu.Unlock()
		what := f(&v)
		switch {
		case what == "":
			return nil
		case refused != nil:
			return refused
		}
		timer := time.NewTimer(pause)
		select {
		case <-changed:
		case <-timer.C:
			text := fmt.Sprintf("group %q waits for %s", k.cfg.Name, what)
			if trouble != nil {
				text += fmt.Sprintf("; %v", trouble)
			}
			k.cfg.Warn(text)
			pause *= 2
		case <-ctx.Done():
			timer.Stop()
			return &WaitError{k.cfg.Name, what, ctx.Err(), trouble}
		case <-k.life.Done():
			timer.Stop()
			return ErrClosed
		}
		timer.Stop()
	}
}

// sees waits until f reports the newest plan, and reports whether it has before the end of ctx.
func (k *keeper) sees(ctx context.Context, f func(p *Plan) bool) bool {
	for {
		k.mu.Lock()
		plan, changed := k.view.plan, k.changed
		k.mu.Unlock()
		if f(&plan) {
			return true
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
}

// wasEvicted returns the generation that evicted this member since the last call, or 0, and the first
// generation that has its present incarnation.
func (k *keeper) wasEvicted() (generation, first uint64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	generation = k.evicted
	k.evicted = 0
	return generation, k.first
}

// needs returns the lowest generation that this member accepts, at least 1.
func (k *keeper) needs() uint64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	return max(1, k.own.Needs)
}

func (k *keeper) incarnation() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.own.Incarnation
}

func (k *keeper) plan() Plan {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.view.plan
}

// leave ends the goroutine and takes the member out of the group, also when ctx has ended. In order means that
// nothing is lost with it. release ends the lease.
func (k *keeper) leave(ctx context.Context, inOrder bool) {
	k.die()
	k.wg.Wait()
	if k.lease == nil || k.holds == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), probeTime)
	defer cancel()
	for { // others may write meanwhile, as when many members leave: the leader's key alone matters
		s, err := k.engine.Get(ctx, k.prefix)
		if err != nil {
			return
		}
		key := s.Find(k.prefix + "members/" + k.own.ID)
		var has registration
		if json.Unmarshal([]byte(key.Value), &has) != nil || has.Incarnation != k.own.Incarnation {
			return // lost, or another's
		}
		leader := s.Find(k.prefix + "leader")
		t := membership.Txn{
			If:     []membership.Condition{{Key: key.Name, Modified: key.Modified}, {Key: leader.Name, Modified: leader.Modified}},
			Delete: []string{key.Name, k.prefix + "addresses/" + k.own.Address},
		}
		if leader.Value == k.own.Incarnation {
			t.Delete = append(t.Delete, leader.Name)
		}
		if inOrder {
			t.Put = []membership.Put{{Key: k.prefix + "left/" + k.own.Incarnation, Value: k.own.ID}}
		}
		if done, err := k.engine.Commit(ctx, t); done || err != nil {
			return
		}
	}
}

// release ends the lease, also when ctx has ended.
func (k *keeper) release(ctx context.Context) {
	if k.lease == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), probeTime)
	defer cancel()
	if err := k.lease.Revoke(ctx); err != nil && !errors.As(err, new(*membership.UnavailableError)) {
		k.cfg.Warn(fmt.Sprintf("the lease of %s: %v", k.own.ID, err))
	}
}
