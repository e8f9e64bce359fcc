package main

import (
	"encoding/json"
	"io"
	"math/rand/v2"

	"tributary/verify/protocol/explorer"
)

// A walk is a random run of some hundred packets through the card. It prints each event and the
// card's reaction by the rules; verify/protocol/walks compares other cards with it. Workers,
// network and controller are the explorer's. Besides them, forged packets arrive from any port.
// The card acts at once and completely on every event, because another card cannot be stopped
// half way.
//
// Deadlines need time, counted in clock cycles. Events are so far apart that the card finishes
// one before the next, and none falls on a deadline.
const (
	walkGap      = 1500  // least distance of two packets: a card answers refusals every 1,024 cycles
	walkWindow   = 800   // within it all effects of an event happen
	walkDeadline = 20000 // of a slot
	walkPackets  = 80
	walkEpochs   = 7 // tags have room for 8
)

// walkHead is the first line of a walk. All jobs have one shape, and the card has a port for each
// member.
type walkHead struct {
	Walk     uint64
	Members  []uint64 // of each job: the set of its ports
	Window   int
	Deadline int // cycles; 0: none
	Partial  bool
	Settled  int // cycles within which all effects of an event happen
}

// walkEvent is one line of a walk: an event and the card's reaction. VIDs and epochs have the
// values that packets carry.
type walkEvent struct {
	Do      string // commit, abort, data, ask, finish, together, reset, deadline, end
	At      int    // clock cycles since the walk began
	Port    int    `json:",omitempty"`
	Job     int
	Epoch   uint16
	Rank    uint8
	VID     uint32
	Tag     *walkTag `json:",omitempty"` // data: the contribution
	Says    []string
	Answer  string
	Sent    []walkPacket
	Jobs    []walkJob
	Packets []walkEvent    `json:",omitempty"` // together: the packets that arrive at once
	Counts  map[string]int `json:",omitempty"` // end: the card's counters since the last reset
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
	Tags  []walkTag `json:",omitempty"` // result, replay: the summed contributions
}

// walkTag is a contribution: its member, and a number unique among that member's contributions.
type walkTag struct {
	From   int
	Number uint16
}

// walkJob is the readable state of a job.
type walkJob struct {
	Up       bool
	Epoch    uint16
	Finished uint64 // ranks
	Evicted  uint64
}

// answerNames are the names of answers in a walk. An answer with a status code has the code's
// name.
var answerNames = map[answer]string{stored: "stored", duplicate: "duplicate", owes: "owes", underWay: "under_way", wait: "wait",
	sendIt: "send", notReady: "not_ready", late: "late", early: "early", done: "done", badJob: "bad_job", badEpoch: "bad_epoch",
	badRank: "bad_rank", gone: "evicted", stale: "stale_epoch"}

// walk is a walk in progress.
type walk struct {
	*world
	rng     *rand.Rand
	out     *json.Encoder
	now     int
	packets int // events that the card has seen

	vidBase   uint32 // value of VID 0 in packets
	epochBase uint16

	fresh  []int            // packets under way that have not arrived yet
	known  int              // number of packets in the table that look has seen
	timers map[int]timer    // by slot; only slots that wait
	sentTo map[sentKey]bool // results that the card has sent before
	counts map[string]int
	err    error // the first write error
}

// timer is when a slot's deadline expires, and the slot's state when it started.
type timer struct {
	at        int
	vid       uint8
	collected bool
}

// sentKey names a result that the card sent to a member.
type sentKey struct{ job, epoch, vid, member int }

// takeWalk prints the walk of a seed.
func takeWalk(out io.Writer, seed uint64, rules ruleSet) error {
	rng := rand.New(rand.NewPCG(seed, 0))
	c := walkConfig(seed, rng)
	k := &walk{
		world: &world{config: &c, rules: rules, packets: explorer.NewNumbers[packet](maxPackets)},
		rng:   rng, out: json.NewEncoder(out),
		timers: map[int]timer{}, sentTo: map[sentKey]bool{}, counts: map[string]int{},
	}
	k.Start()
	k.network = packetSet{}
	k.vidBase, k.epochBase = rng.Uint32(), uint16(rng.Uint32())
	if rng.IntN(3) > 0 {
		k.vidBase = -uint32(c.First) - uint32(1+rng.IntN(3*c.Window)) // the VIDs wrap soon
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

// walkConfig chooses a walk's jobs. Consecutive seeds get different ones.
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
