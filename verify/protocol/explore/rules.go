package main

// ruleSet is a set of rules that are left out or changed. The empty set is the
// protocol.
type ruleSet uint64

// One bit for each check that a card, a worker or a controller makes, and for
// each thing that it clears. The comment says what is then done instead.
const (
	// Slots and contributions.
	slotsOfOneWindow      ruleSet = 1 << iota // W slots: v lives in slot v mod W, u + W takes its place
	sendOneAhead                              // a worker sends v when it holds all up to v - W - 1
	noBitmap                                  // contributions are counted, not marked by member
	storeWhenComplete                         // a contribution is stored after the sum was begun
	duplicateWrites                           // the payload of a repetition is written all the same
	turnoverWithoutDone                       // u + 2W takes the slot though not all are done with u
	turnoverUnreduced                         // u + 2W takes the slot though u is not reduced
	turnoverKeepsHeld                         // a new use of the slot starts with the last one's held bits
	turnoverKeepsDone                         // likewise done bits
	turnoverKeepsOwed                         // owed replays are queued by slot, and outlive its turnover
	noEvidence                                // data v does not show that the sender is done with v - W
	evidenceOfOtherVID                        // ... with whatever the slot of v - W holds
	evidenceUnreduced                         // ... though the slot is not reduced
	noDoneOfNext                              // data u + 2W does not show that its sender is done with u
	storeAnyInSlot                            // a VID that is neither u nor u + 2W is taken for u
	longLifetime                              // a packet outlives the wrap of VIDs
	overwriteWhileSending                     // a sum is written over the result that is being sent

	// Replays.
	noReplay           // a repetition or an ask of a reduced slot is not answered
	noReplayOfData     // a repetition is not
	noReplayOfAsk      // an ask is not
	notOwedWhenReduced // a reduction makes nobody owed its result
	turnoverLeavesOwed // a turnover leaves owed bits; only reduced slots send
	owedForEver        // the start of a transmission does not clear the owed bit
	askOfOtherVID      // an ask is answered with whatever the slot holds
	noSendStatus       // an ask whose data is missing is not answered with send
	askOfNextDropped   // an ask for u + 2W is not answered with send

	// Checks of the header.
	anyJob   // data of another job is taken for job 0's
	anyEpoch // data, ask and finish of another epoch
	anyRank  // a rank that does not belong to the port
	notUp    // a job that is not set up

	// Life of a job.
	anyOlderEpoch       // a commit of an older epoch sets the job up
	sameEpochAgain      // a commit of the running epoch sets the job up again
	setUpKeepsHeld      // a set-up leaves the slots' held bits
	setUpKeepsOwed      // and owed bits
	reductionOutlivesUp // a reduction in flight goes on in the next epoch
	begunLeavesTorn     // a result that was begun leaves whole, though its reduction was discarded
	setUpKeepsFinished  // a set-up leaves the finished bits
	endAtFirstFinish    // the job ends when one member has finished
	finishForgotten     // a finish after the job's end is refused
	sameEpochReturn     // a worker that lost its state comes back in the same epoch
	giveUpInputs        // a worker gives up its input v when it holds the result v
	oneWindowOfInputs   // ... when it holds v + W, though sums may be partial
	unstoppedWorkers    // workers go on in the old epoch while the new one is being set up

	// Deadlines.
	evictedCounts       // an evicted member is still waited for
	evictedHeard        // an evicted member's packets are taken
	evictMissingOnly    // a second deadline evicts only who is missing in a sum
	evictionUntold      // it is not told
	evictionClosesSlots // slots that only waited for the evicted go on at once
	evictionDropsOwed   // the evicted is no longer owed results
	evictUnasked        // members are evicted though nobody waits for the slot
	evictOne            // ... one at a time
	evictedFinishHeard  // a finish of the evicted is answered done after the job's end
	evictionLeavesJob   // a job that only waited for the finish of the evicted does not end
	partialUnmarked     // a partial sum names all members
	deadlineOfAny       // partial sums of jobs that did not ask

	// What a worker takes.
	resultOfAnyEpoch // results of another epoch
	resultBeforeSent // results of its window that it has not sent
	resultOfAnyVID   // a result that is not in its window, for the first it lacks

	lastRule = resultOfAnyVID
)

// without says whether a rule is left out.
func (w *world) without(rule ruleSet) bool { return w.rules&rule != 0 }
