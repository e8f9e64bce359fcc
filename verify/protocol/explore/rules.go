package main

import "tributary/verify/protocol/explorer"

// ruleSet is a set of rules that are left out or changed. The empty set is the protocol.
type ruleSet = explorer.Rules

// One bit for each check that a card, a worker or a controller makes, and for each state that it
// clears. The comment gives the behaviour without that rule.
const (
	// Slots and contributions.
	slotsOfOneWindow      ruleSet = 1 << iota // W slots: v uses slot v mod W, and u + W follows u
	sendOneAhead                              // a worker sends v when it holds all results up to v - W - 1
	noBitmap                                  // contributions are counted, not marked by member
	storeWhenComplete                         // the card stores a contribution after the sum has begun
	duplicateWrites                           // the card writes the payload of a duplicate
	turnoverWithoutDone                       // u + 2W takes the slot though not all members are done with u
	turnoverUnreduced                         // u + 2W takes the slot before u is reduced
	turnoverKeepsHeld                         // a new use of the slot starts with the last one's held bits
	turnoverKeepsDone                         // likewise done bits
	turnoverKeepsOwed                         // owed replays are queued by slot, and outlive its turnover
	noEvidence                                // data v does not show that the sender is done with v - W
	evidenceOfOtherVID                        // ... done with whatever VID the slot of v - W holds
	evidenceUnreduced                         // ... done with v - W before it is reduced
	noDoneOfNext                              // data u + 2W does not show that its sender is done with u
	storeAnyInSlot                            // the card takes a VID that is neither u nor u + 2W as u
	longLifetime                              // a packet outlives the wrap of VIDs
	overwriteWhileSending                     // a sum overwrites a result that the card is sending

	// Replays.
	noReplay           // the card does not answer a duplicate or an ask of a reduced slot
	noReplayOfData     // nor a duplicate alone
	noReplayOfAsk      // nor an ask alone
	notOwedWhenReduced // a reduction sets no owed bits
	turnoverLeavesOwed // a turnover leaves owed bits; only reduced slots send
	owedForEver        // the start of a transmission does not clear the owed bit
	askOfOtherVID      // the card answers an ask with any result that the slot holds
	noSendStatus       // the card does not answer send to an ask whose data is missing
	askOfNextDropped   // the card does not answer send to an ask for u + 2W

	// Checks of the header.
	anyJob   // the card takes data of another job as job 0's
	anyEpoch // the card takes data, asks and finishes of another epoch
	anyRank  // the card takes a rank that does not belong to the port
	notUp    // the card takes packets of a job that is not set up

	// Life of a job.
	anyOlderEpoch       // a commit of an older epoch sets the job up
	sameEpochAgain      // a commit of the running epoch sets the job up again
	setUpKeepsHeld      // a set-up leaves the held bits of the slots
	setUpKeepsOwed      // a set-up leaves the owed bits
	reductionOutlivesUp // a reduction in flight continues in the next epoch
	begunLeavesTorn     // a result that has begun leaves whole, though its reduction was discarded
	setUpKeepsFinished  // a set-up leaves the finished bits
	endAtFirstFinish    // the job ends when one member has finished
	finishForgotten     // the card refuses a finish after the job's end
	sameEpochReturn     // a worker that lost its state returns in the same epoch
	giveUpInputs        // a worker drops its input v when it holds the result v
	oneWindowOfInputs   // ... when it holds v + W, even with partial sums
	unstoppedWorkers    // workers continue in the old epoch while the controller sets up the new one

	// Deadlines.
	evictedCounts       // slots still wait for an evicted member
	evictedHeard        // the card takes an evicted member's packets
	evictMissingOnly    // a second deadline evicts only members missing from the sum
	evictionUntold      // the card does not notify an evicted member
	evictionClosesSlots // a slot that waited only for an evicted member is summed at once
	evictionDropsOwed   // an eviction clears the member's owed bits
	evictUnasked        // the card evicts members though no member waits for the slot
	evictOne            // ... one at a time
	evictedFinishHeard  // after the job's end the card answers an evicted member's finish with done
	evictionLeavesJob   // a job that waited only for the finish of an evicted member does not end
	partialUnmarked     // a partial sum names all members
	deadlineOfAny       // partial sums in jobs that did not ask for them

	// Results that a worker takes.
	resultOfAnyEpoch // results of another epoch
	resultBeforeSent // results in its window for VIDs that it has not sent
	resultOfAnyVID   // any result, as the first that it lacks

	lastRule = resultOfAnyVID
)

// without reports whether a rule is left out.
func (w *world) without(rule ruleSet) bool { return w.rules&rule != 0 }
