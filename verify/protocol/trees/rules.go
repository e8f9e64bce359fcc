package main

import "tributary/verify/protocol/explorer"

// ruleSet is a set of rules that are left out or changed.
type ruleSet = explorer.Rules

// One bit for each check that a leaf, its parent or the owner makes. The comment gives the behaviour
// without that rule. The rules of a card alone have their weakenings in verify/protocol/explore.
const (
	// Own sums.
	ownSumIsFinal    ruleSet = 1 << iota // the own sum is owed to the members at once
	upIncomplete                         // each contribution sends the sum of those held upwards
	upTooEarly                           // an own sum leaves while the chunk of v - W lacks its final sum
	upOnlyNotWaiting                     // an own sum leaves unless the slot of v - W is waiting or closing
	noRepeatOfAsk                        // an ask does not owe a waiting own sum again
	noRepeatOfData                       // nor does data
	owedForEver                          // the sending of an own sum does not clear the debt
	owedWhenReduced                      // the final sum leaves the debt, and then leaves as data

	// Final sums.
	finalOfAnyVID     // a leaf takes a final sum by its slot alone
	finalOfAnyEpoch   // of another epoch
	finalOfAnyTree    // of another upward UDP port
	finalFromAny      // from any sender
	finalOfAnyRanks   // with any mask
	finalBeforeOwn    // while the slot is collecting
	finalTwice        // when the slot has it already
	finalAdded        // the final sum is added to the own sum
	finalKept         // the leaf keeps the own sum, and passes the final sum on when it takes it
	finalWhileSending // the final sum replaces the own sum while that is being sent
	turnoverWaiting   // a leaf's slot turns over while it waits, done or not
	turnoverUnreduced // ... if all members are done
	turnoverKeepsHeld // a new use of a slot starts with the last one's held bits

	// The parent.
	parentNoReplay    // the parent does not answer data of a reduced slot
	parentNoEvidence  // data v of a leaf does not show that it is done with v - W
	evidenceUnreduced // data v shows it whatever the slot of v - W is
	dataOfAnyEpoch    // a card takes data of another epoch
	dataOfAnyTree     // the parent takes data of another upward UDP port
	dataFromAny       // a card takes data in any member's name

	// Finish.
	finishFirst     // a leaf sends finish when one of its members has finished
	finishOnce      // a leaf sends its finish once
	finishAnswered  // a leaf answers every finish by done
	finishOfAnyTree // the parent takes a finish of another upward UDP port
	finishForgotten // a leaf does not answer a finish after its job's end
	doneOfAnyEpoch  // a leaf takes a done of another epoch
	doneOfAnyTree   // ... of another upward UDP port
	doneUnfinished  // ... while not all its members have finished
	doneUnnoticed   // a leaf's members get no notice when the job ends

	// A new epoch.
	onlyTheRestarted // the owner sets up only the cards that failed
	epochOfTree      // the owner takes the epoch after its own, whatever the cards had last
	sameEpoch        // the owner sets the same epoch up again
	anyOlderEpoch    // a commit of an older epoch sets the job up
	sameEpochAgain   // a commit of the running epoch sets the job up again
	beginEarly       // workers begin before all cards have answered the commit
	unstopped        // workers continue in the old epoch while the owner sets up the next
	firstOfFastest   // the first VID is the highest that a worker lacks
	inputsGivenUp    // a worker drops its input v when it holds the result v
	oldResultsCount  // results of the last epoch count for a worker's window
	noAbort          // the owner does not abort what a card's death has left of a finished job
	heldUnsent       // a worker does not send chunks whose results it holds from the last epoch
	zerosUnshared    // a worker sends zeros for those, and others still lack them
	resultOfAnyEpoch // a worker takes results of another epoch

	lastRule = resultOfAnyEpoch
)

// without reports whether a rule is left out.
func (w *world) without(rule ruleSet) bool { return w.rules&rule != 0 }
