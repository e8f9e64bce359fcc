package main

import (
	"encoding/json"
	"io"
	"math/rand/v2"
)

// A walk is a run of some hundred packets through the card, drawn from a seed and
// printed with what the rules have the card do: verify/protocol/walks has other cards do
// the same, and compares. Workers, network and controller are the explorer's;
// beside them anyone sends anything. What a card does by itself it does at once
// here, all of it, since another card cannot be held up in the middle.
//
// Time is counted in clock cycles, for the deadlines: events are so far apart that
// what one leads to is over before the next, and none comes while a deadline passes.
const (
	walkGap      = 1500  // from one packet to the next, at least: a card answers refusals every 1,024 cycles
	walkWindow   = 800   // in which all that an event leads to happens
	walkDeadline = 20000 // what a slot is given
	walkPackets  = 80
	walkEpochs   = 7 // tags have room for 8
)

// walkHead is the first line of a walk: the jobs, all of one shape, on a card that
// has a port for each member.
type walkHead struct {
	Walk     uint64
	Members  []uint64 // of each job: its ports
	Window   int
	Deadline int // cycles; 0: none
	Partial  bool
	Settled  int // cycles in which all that an event leads to happens
}

// walkEvent is a line of a walk: what happens, and what the card then does. VIDs
// and epochs are as they travel.
type walkEvent struct {
	Do      string // commit, abort, data, ask, finish, together, reset, deadline, end
	At      int    // clock cycles since the walk began
	Port    int    `json:",omitempty"`
	Job     int
	Epoch   uint16
	Rank    uint8
	VID     uint32
	Tag     *walkTag `json:",omitempty"` // data: what its payload is
	Says    []string
	Answer  string
	Sent    []walkPacket
	Jobs    []walkJob
	Packets []walkEvent    `json:",omitempty"` // together: what is sent at once
	Counts  map[string]int `json:",omitempty"` // end: what the card has counted since the last reset
}

// walkPacket is a packet that the card sends, for one receiver.
type walkPacket struct {
	Kind  string // status, result, replay
	Job   int
	Epoch uint16
	Rank  uint8
	Code  string `json:",omitempty"` // status
	VID   uint32
	Mask  uint64    // ranks
	Tags  []walkTag `json:",omitempty"` // result, replay: what was added up
}

// walkTag is a contribution: whose it is, and a number that no other one of this
// member has.
type walkTag struct {
	From   int
	Number uint16
}

// walkJob is what can be read of a job.
type walkJob struct {
	Up       bool
	Epoch    uint16
	Finished uint64 // ranks
	Evicted  uint64
}

// answerNames are the names of answers in a walk: those of codes where there are
// any.
var answerNames = map[answer]string{stored: "stored", duplicate: "duplicate", owes: "owes", underWay: "under_way", wait: "wait",
	sendIt: "send", notReady: "not_ready", late: "late", early: "early", done: "done", badJob: "bad_job", badEpoch: "bad_epoch",
	badRank: "bad_rank", gone: "evicted", stale: "stale_epoch"}

// walk is a walk under way.
type walk struct {
	*world
	rng     *rand.Rand
	out     *json.Encoder
	now     int
	packets int // that the card has met

	vidBase   uint32 // VID 0 as it travels
	epochBase uint16

	fresh  []int            // packets under way that have not arrived yet
	known  int              // packets of the table that were looked at
	timers map[int]timer    // by slot: those that wait
	sentTo map[sentKey]bool // who was sent which result
	counts map[string]int
	err    error // the first of printing
}

// timer is when a slot's deadline passes, and what the slot waited for.
type timer struct {
	at        int
	vid       uint8
	collected bool
}

// sentKey is a result that was sent to a member.
type sentKey struct{ job, epoch, vid, member int }

// takeWalk prints the walk of a seed.
func takeWalk(out io.Writer, seed uint64, rules ruleSet) error {
	rng := rand.New(rand.NewPCG(seed, 0))
	c := walkConfig(seed, rng)
	k := &walk{
		world: &world{config: &c, rules: rules, packets: &packetTable{numbers: map[packet]int{}}},
		rng:   rng, out: json.NewEncoder(out),
		timers: map[int]timer{}, sentTo: map[sentKey]bool{}, counts: map[string]int{},
	}
	k.start()
	k.network = packetSet{}
	k.vidBase, k.epochBase = rng.Uint32(), uint16(rng.Uint32())
	if rng.IntN(3) > 0 {
		k.vidBase = -uint32(c.First) - uint32(1+rng.IntN(3*c.Window)) // VIDs wrap soon
	}
	if rng.IntN(2) > 0 {
		k.epochBase = -uint16(1 + rng.IntN(2))
	}
	if err := k.out.Encode(k.head(seed)); err != nil {
		return err
	}
	for j := range c.Jobs {
		k.commit(packet{kind: commit, job: uint8(j), vid: uint8(c.First)})
	}
	for k.packets < walkPackets {
		k.step()
	}
	k.probe()
	k.event(walkEvent{Do: "end", Counts: k.counts}, func(*walkEvent) answer { return done })
	return k.err
}

// walkConfig chooses a walk's jobs. Seeds that follow one another have
// different ones.
func walkConfig(seed uint64, rng *rand.Rand) config {
	jobs := [][]int{{2}, {3}, {2, 1}, {1, 2}}
	c := config{
		Jobs: jobs[seed%4], Window: 1 + int(seed/4%2), Modulus: 1 << 32, EpochModulus: 1 << 16, Beats: 1, Epochs: walkEpochs,
		Restarts: 255, Resets: 255, Evictions: 255,
		Partial: seed/8%3 == 1, Notices: seed/8%3 == 2,
	}
	c.First = 2*c.Window + rng.IntN(2*c.Window)
	c.Chunks = 4*c.Window + rng.IntN(40)
	return c
}

func (k *walk) head(seed uint64) walkHead {
	h := walkHead{Walk: seed, Window: k.config.Window, Partial: k.config.Partial, Settled: walkWindow}
	for j := range k.config.Jobs {
		h.Members = append(h.Members, uint64(k.config.membersOf(j)))
	}
	if k.config.Partial || k.config.Notices {
		h.Deadline = walkDeadline
	}
	return h
}
