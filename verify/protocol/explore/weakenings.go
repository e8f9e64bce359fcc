package main

// weakening is a rule left out or changed, and what then goes wrong.
type weakening struct {
	Name     string
	Means    string
	Config   string   // where it is looked for
	Breaks   property // what is looked for, and found
	Harmless string   // or why nothing breaks

	rules   ruleSet
	reshape func(*config) // changes what no rule says; nil: nothing
}

// fewChunks makes a stream shorter, where a weakening gives rise to many states.
func fewChunks(c *config) { c.Chunks = 2 }

// weakenings are first the ways in which the protocol is known to break, and then
// every check that card, worker and controller make, each with what is found
// without it. Where nothing breaks the check is there for another reason, or
// another one does its work too.
var weakenings = []weakening{
	{Name: "slots-of-one-window", Means: "W slots instead of 2W",
		Config: "two-by-one", Breaks: neverTurnedAway, rules: slotsOfOneWindow},
	{Name: "slots-of-one-window-and-no-done", Means: "W slots instead of 2W, each reused as soon as one member sends what comes next",
		Config: "two-by-one", Breaks: noEarlyReuse, rules: slotsOfOneWindow | turnoverWithoutDone},
	{Name: "window-of-three", Means: "W = 3: 6 slots do not divide the modulus, so VIDs change their slots at the wrap",
		Config: "two-by-one", Breaks: progress,
		reshape: func(c *config) {
			c.About = "2 workers, W = 3, VIDs wrap"
			c.Window, c.Modulus, c.First, c.Chunks = 3, 16, 14, 4
		}},
	{Name: "send-one-ahead", Means: "a worker sends v when it holds every result up to v - W - 1",
		Config: "two-by-one", Breaks: noEarlyReuse, rules: sendOneAhead},
	{Name: "no-bitmap", Means: "contributions are counted, not marked by member",
		Config: "two-by-one", Breaks: summedOnce, rules: noBitmap},
	{Name: "no-replay", Means: "a repetition or an ask of a summed VID is not answered",
		Config: "two-by-one", Breaks: progress, rules: noReplay},
	{Name: "replays-outlive-turnover", Means: "replays are queued by slot, and not dropped at its turnover",
		Config: "two-by-one", Breaks: rightResult, rules: turnoverKeepsOwed},
	{Name: "rogue-two-windows-ahead", Means: "a rogue sends 2W ahead, and the slot turns over without the others being done",
		Config: "rogue", Breaks: noEarlyReuse, rules: turnoverWithoutDone},
	{Name: "partial-turnover-without-done", Means: "a slot turns over after a partial sum without its straggler being done",
		Config: "partial", Breaks: noEarlyReuse, rules: turnoverWithoutDone},
	{Name: "store-after-deadline", Means: "a contribution that comes after the deadline is stored",
		Config: "partial", Breaks: summedOnce, rules: storeWhenComplete},
	{Name: "outlives-wrap", Means: "a packet lives one chunk longer than the modulus less 2W",
		Config: "two-by-one", Breaks: noEarlyReuse, rules: longLifetime},

	// What follows takes the checks of the rules away one by one.
	{Name: "no-evidence", Means: "data v does not show that its sender is done with v - W",
		Config: "two-by-one", Breaks: neverTurnedAway, rules: noEvidence},
	{Name: "no-done-of-next", Means: "data u + 2W does not show that its sender is done with u",
		Config: "partial", Breaks: progress, rules: noDoneOfNext},
	{Name: "evidence-of-other-vid", Means: "data v marks its sender done with whatever the slot of v - W holds",
		Config: "partial", Breaks: noEarlyReuse, rules: evidenceOfOtherVID},
	{Name: "evidence-unreduced", Means: "data v marks its sender done with v - W though that is not reduced",
		Config: "rogue", Harmless: "who keeps the rules holds v - W when it sends v, so that has been reduced; a rogue speaks for itself alone", rules: evidenceUnreduced},
	{Name: "turnover-unreduced", Means: "a slot turns over though it is not reduced",
		Config: "rogue", Harmless: "a worker is done with u only when it holds the result u, so u has been reduced, unless only rogues are left", rules: turnoverUnreduced},
	{Name: "turnover-keeps-held", Means: "a turnover does not clear the held bits",
		Config: "two-by-one", Breaks: summedOnce, rules: turnoverKeepsHeld},
	{Name: "turnover-keeps-done", Means: "a turnover does not clear the done bits",
		Config: "partial", Breaks: noEarlyReuse, rules: turnoverKeepsDone},
	{Name: "store-any-in-slot", Means: "a VID that is neither u nor u + 2W is taken for u",
		Config: "two-by-one-late", Breaks: summedOnce, rules: storeAnyInSlot},
	{Name: "duplicate-writes", Means: "the payload of a repetition is written all the same",
		Config: "rogue-beats", Breaks: summedOnce, rules: duplicateWrites},
	{Name: "store-when-reducing", Means: "a contribution is stored while its slot is reduced",
		Config: "partial-beats", Breaks: summedOnce, rules: storeWhenComplete},
	{Name: "overwrite-while-sending", Means: "a sum overwrites the result that is being sent",
		Config: "beats", Breaks: sameReplay, rules: overwriteWhileSending},
	{Name: "no-replay-of-data", Means: "data of a summed VID is not answered with the result",
		Config: "partial", Harmless: "the worker asks for a result that is overdue, and is then answered", rules: noReplayOfData},
	{Name: "no-replay-of-ask", Means: "an ask for a summed VID is not answered with the result",
		Config: "two-by-one", Breaks: progress, rules: noReplayOfAsk},
	{Name: "not-owed-when-reduced", Means: "a result is sent to those alone who ask for it or repeat their data",
		Config: "partial", Harmless: "the worker asks for a result that is overdue: it is only slow", rules: notOwedWhenReduced},
	{Name: "turnover-leaves-owed", Means: "a turnover leaves the owed bits, but a slot sends only when it is reduced",
		Config: "partial", Harmless: "all are owed the result of the next reduction anyway", rules: turnoverLeavesOwed},
	{Name: "owed-for-ever", Means: "the start of a transmission does not clear the owed bit",
		Config: "two-by-one", Breaks: progress, rules: owedForEver},
	{Name: "ask-of-other-vid", Means: "an ask is answered with whatever the slot holds",
		Config: "two-by-one", Breaks: progress, rules: askOfOtherVID},
	{Name: "no-send-status", Means: "an ask whose data is missing is not answered with send",
		Config: "two-by-one", Breaks: progress, rules: noSendStatus},
	{Name: "ask-of-next-dropped", Means: "an ask for u + 2W is not answered with send",
		Config: "two-by-one", Breaks: progress, rules: askOfNextDropped},

	{Name: "any-job", Means: "the job of a packet is not looked at",
		Config: "jobs", Breaks: isolated, rules: anyJob},
	{Name: "any-epoch", Means: "the epoch of data is not looked at",
		Config: "restart", Breaks: summedOnce, rules: anyEpoch},
	{Name: "any-rank", Means: "a rank that does not belong to the port is taken",
		Config: "rogue", Breaks: summedOnce, rules: anyRank},
	{Name: "any-rank-of-other-job", Means: "the same, from another job",
		Config: "jobs-rogue", Breaks: isolated, rules: anyRank},
	{Name: "not-up", Means: "packets of a job that is not set up are taken",
		Config: "reset", Breaks: summedOnce, rules: notUp},

	{Name: "any-older-epoch", Means: "a commit of an older epoch sets the job up",
		Config: "restart", Breaks: progress, rules: anyOlderEpoch, reshape: fewChunks},
	{Name: "same-epoch-again", Means: "a repeated commit sets the job up again",
		Config: "restart", Breaks: progress, rules: sameEpochAgain, reshape: fewChunks},
	{Name: "set-up-keeps-held", Means: "a new epoch does not clear the held bits",
		Config: "restart", Harmless: "the first turnover of each slot clears them", rules: setUpKeepsHeld},
	{Name: "set-up-keeps-owed", Means: "a new epoch does not clear the owed bits",
		Config: "restart", Breaks: sameReplay, rules: setUpKeepsOwed},
	{Name: "reduction-outlives-epoch", Means: "a reduction in flight goes on in the next epoch",
		Config: "restart", Breaks: summedOnce, rules: reductionOutlivesUp},
	{Name: "begun-leaves-torn", Means: "a result that was begun before it was summed leaves whole, though its reduction was discarded",
		Config: "cut-through", Breaks: rightResult, rules: begunLeavesTorn},
	{Name: "set-up-keeps-finished", Means: "a new epoch does not clear who has finished",
		Config: "restart", Breaks: noEarlyReuse, rules: setUpKeepsFinished},
	{Name: "end-at-first-finish", Means: "a job ends when one member has finished",
		Config: "evict-return", Breaks: noEarlyReuse, rules: endAtFirstFinish},
	{Name: "finish-forgotten", Means: "a finish after the job's end is not answered",
		Config: "two-by-one", Harmless: "the refusal says that the job has ended, and a worker that has everything needs no more", rules: finishForgotten},
	{Name: "same-epoch-return", Means: "a worker that lost its state returns in the same epoch",
		Config: "restart", Breaks: noEarlyReuse, rules: sameEpochReturn},
	{Name: "inputs-given-up", Means: "a worker keeps its input v only until it holds the result v",
		Config: "reset", Breaks: inputsThere, rules: giveUpInputs},
	{Name: "unstopped-workers", Means: "workers go on in the old epoch while the controller sets up the next",
		Config: "restart", Breaks: inputsThere, rules: unstoppedWorkers},
	{Name: "one-window-of-inputs", Means: "where sums may be partial, a worker keeps its input v only until it holds v + W",
		Config: "partial-reset", Breaks: inputsThere, rules: oneWindowOfInputs},

	{Name: "evicted-counts", Means: "a slot waits for a member that was evicted",
		Config: "evict", Breaks: progress, rules: evictedCounts},
	{Name: "evicted-heard", Means: "packets of a member that was evicted are taken",
		Config: "evict", Breaks: summedOnce, rules: evictedHeard},
	{Name: "eviction-untold", Means: "a member that was evicted is not told",
		Config: "evict", Breaks: progress, rules: evictionUntold},
	{Name: "evict-missing-only", Means: "a second deadline evicts only who is missing in a sum",
		Config: "evict-rogue", Breaks: progress, rules: evictMissingOnly},
	{Name: "eviction-closes-slots", Means: "slots that only waited for the evicted go on at once",
		Config: "evict", Harmless: "the deadline of the slot would sum the same", rules: evictionClosesSlots},
	{Name: "evict-unasked", Means: "members that are not done are evicted though nobody waits for the slot",
		Config: "evict", Breaks: forCause, rules: evictUnasked},
	{Name: "evict-one", Means: "members that are not done are evicted one at a time",
		Config: "evict", Harmless: "the next deadline evicts the next", rules: evictOne},
	{Name: "evicted-finish-heard", Means: "a finish of the evicted is answered done after the job's end",
		Config: "evict", Harmless: "who finishes has everything", rules: evictedFinishHeard},
	{Name: "eviction-leaves-job", Means: "a job that only waited for the finish of the evicted does not end",
		Config: "evict", Harmless: "who waits for a slot has not finished, so if anybody is left the job goes on", rules: evictionLeavesJob},
	{Name: "eviction-drops-owed", Means: "the evicted is no longer sent what it was owed",
		Config: "evict", Harmless: "it is told that it is out", rules: evictionDropsOwed},
	{Name: "partial-unmarked", Means: "a partial sum names all members",
		Config: "partial", Breaks: summedOnce, rules: partialUnmarked},
	{Name: "deadline-of-any", Means: "deadlines sum what there is, of jobs that did not ask for it",
		Config: "two-by-one", Breaks: summedOnce, rules: deadlineOfAny},

	{Name: "result-of-any-epoch", Means: "a worker takes results of another epoch",
		Config: "restart", Breaks: rightResult, rules: resultOfAnyEpoch},
	{Name: "result-before-sent", Means: "a worker takes results of its window for VIDs that it has not sent",
		Config: "partial", Harmless: "the result is right, and the worker sends its late contribution all the same", rules: resultBeforeSent},
	{Name: "result-of-any-vid", Means: "a worker takes any result for the first it lacks",
		Config: "two-by-one", Breaks: rightResult, rules: resultOfAnyVID},
}
