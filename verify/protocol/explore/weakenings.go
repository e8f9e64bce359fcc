package main

// weakening is a rule left out or changed, and the property that this breaks.
type weakening struct {
	Name     string
	Means    string
	Config   string   // the configuration to explore
	Breaks   property // the only property to test, which must break
	Harmless string   // why nothing breaks; empty if a property does

	rules   ruleSet
	reshape func(*config) // changes the configuration instead of a rule; nil: no change
}

// fewChunks shortens the stream for weakenings that produce many states.
func fewChunks(c *config) { c.Chunks = 2 }

// weakenings lists first the known ways to break the protocol. Then it removes every check of
// card, worker and controller, one at a time, with the property that breaks. If none breaks, the
// check has another purpose, or another check covers it.
var weakenings = []weakening{
	{Name: "slots-of-one-window", Means: "W slots instead of 2W",
		Config: "two-by-one", Breaks: neverTurnedAway, rules: slotsOfOneWindow},
	{Name: "slots-of-one-window-and-no-done", Means: "W slots instead of 2W, each reused as soon as one member sends the next VID",
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
	{Name: "no-replay", Means: "the card does not answer a duplicate or an ask of a summed VID",
		Config: "two-by-one", Breaks: progress, rules: noReplay},
	{Name: "replays-outlive-turnover", Means: "replays are queued by slot, and not dropped at its turnover",
		Config: "two-by-one", Breaks: rightResult, rules: turnoverKeepsOwed},
	{Name: "rogue-two-windows-ahead", Means: "a rogue sends 2W ahead, and the slot turns over though other members are not done",
		Config: "rogue", Breaks: noEarlyReuse, rules: turnoverWithoutDone},
	{Name: "partial-turnover-without-done", Means: "after a partial sum a slot turns over though its straggler is not done",
		Config: "partial", Breaks: noEarlyReuse, rules: turnoverWithoutDone},
	{Name: "store-after-deadline", Means: "the card stores a contribution that arrives after the deadline",
		Config: "partial", Breaks: summedOnce, rules: storeWhenComplete},
	{Name: "outlives-wrap", Means: "a packet lives one chunk longer than the modulus minus 2W",
		Config: "two-by-one", Breaks: noEarlyReuse, rules: longLifetime},

	// The following weakenings remove the checks one at a time.
	{Name: "no-evidence", Means: "data v does not show that its sender is done with v - W",
		Config: "two-by-one", Breaks: neverTurnedAway, rules: noEvidence},
	{Name: "no-done-of-next", Means: "data u + 2W does not show that its sender is done with u",
		Config: "partial", Breaks: progress, rules: noDoneOfNext},
	{Name: "evidence-of-other-vid", Means: "data v marks its sender done with whatever the slot of v - W holds",
		Config: "partial", Breaks: noEarlyReuse, rules: evidenceOfOtherVID},
	{Name: "evidence-unreduced", Means: "data v marks its sender done with v - W before the card has summed v - W",
		Config: "rogue", Harmless: "a worker that keeps the rules holds v - W when it sends v, so the card has summed v - W; a rogue marks only itself", rules: evidenceUnreduced},
	{Name: "turnover-unreduced", Means: "a slot turns over before the card has summed it",
		Config: "rogue", Harmless: "a worker is done with u only when it holds the result u, so the card has summed u, unless only rogues are left", rules: turnoverUnreduced},
	{Name: "turnover-keeps-held", Means: "a turnover does not clear the held bits",
		Config: "two-by-one", Breaks: summedOnce, rules: turnoverKeepsHeld},
	{Name: "turnover-keeps-done", Means: "a turnover does not clear the done bits",
		Config: "partial", Breaks: noEarlyReuse, rules: turnoverKeepsDone},
	{Name: "store-any-in-slot", Means: "the card takes a VID that is neither u nor u + 2W as u",
		Config: "two-by-one-late", Breaks: summedOnce, rules: storeAnyInSlot},
	{Name: "duplicate-writes", Means: "the card writes the payload of a duplicate to memory",
		Config: "rogue-beats", Breaks: summedOnce, rules: duplicateWrites},
	{Name: "store-when-reducing", Means: "the card stores a contribution while it sums the slot",
		Config: "partial-beats", Breaks: summedOnce, rules: storeWhenComplete},
	{Name: "overwrite-while-sending", Means: "a sum overwrites a result that the card is sending",
		Config: "beats", Breaks: sameReplay, rules: overwriteWhileSending},
	{Name: "no-replay-of-data", Means: "the card does not answer data of a summed VID with the result",
		Config: "partial", Harmless: "the worker asks for an overdue result, and the card answers", rules: noReplayOfData},
	{Name: "no-replay-of-ask", Means: "the card does not answer an ask for a summed VID with the result",
		Config: "two-by-one", Breaks: progress, rules: noReplayOfAsk},
	{Name: "not-owed-when-reduced", Means: "the card sends a result only to members that ask for it or repeat their data",
		Config: "partial", Harmless: "the worker asks for an overdue result: the job is only slower", rules: notOwedWhenReduced},
	{Name: "turnover-leaves-owed", Means: "a turnover leaves the owed bits, but a slot sends only when it is reduced",
		Config: "partial", Harmless: "the next reduction sets all owed bits anyway", rules: turnoverLeavesOwed},
	{Name: "owed-for-ever", Means: "the start of a transmission does not clear the owed bit",
		Config: "two-by-one", Breaks: progress, rules: owedForEver},
	{Name: "ask-of-other-vid", Means: "the card answers an ask with any result that the slot holds",
		Config: "two-by-one", Breaks: progress, rules: askOfOtherVID},
	{Name: "no-send-status", Means: "the card does not answer an ask whose data is missing with send",
		Config: "two-by-one", Breaks: progress, rules: noSendStatus},
	{Name: "ask-of-next-dropped", Means: "the card does not answer an ask for u + 2W with send",
		Config: "two-by-one", Breaks: progress, rules: askOfNextDropped},

	{Name: "any-job", Means: "the card ignores the job number of a packet",
		Config: "jobs", Breaks: isolated, rules: anyJob},
	{Name: "any-epoch", Means: "the card ignores the epoch of a packet",
		Config: "restart", Breaks: summedOnce, rules: anyEpoch},
	{Name: "any-rank", Means: "the card takes a rank that does not belong to the port",
		Config: "rogue", Breaks: summedOnce, rules: anyRank},
	{Name: "any-rank-of-other-job", Means: "as any-rank, with a rank of another job",
		Config: "jobs-rogue", Breaks: isolated, rules: anyRank},
	{Name: "not-up", Means: "the card takes packets of a job that is not set up",
		Config: "reset", Breaks: summedOnce, rules: notUp},

	{Name: "any-older-epoch", Means: "a commit of an older epoch sets the job up",
		Config: "restart", Breaks: progress, rules: anyOlderEpoch, reshape: fewChunks},
	{Name: "same-epoch-again", Means: "a repeated commit sets the job up again",
		Config: "restart", Breaks: progress, rules: sameEpochAgain, reshape: fewChunks},
	{Name: "set-up-keeps-held", Means: "a new epoch does not clear the held bits",
		Config: "restart", Harmless: "the first turnover of each slot clears them", rules: setUpKeepsHeld},
	{Name: "set-up-keeps-owed", Means: "a new epoch does not clear the owed bits",
		Config: "restart", Breaks: sameReplay, rules: setUpKeepsOwed},
	{Name: "reduction-outlives-epoch", Means: "a reduction in flight continues in the next epoch",
		Config: "restart", Breaks: summedOnce, rules: reductionOutlivesUp},
	{Name: "begun-leaves-torn", Means: "a result begun before its sum was complete leaves whole, though the card discarded its reduction",
		Config: "cut-through", Breaks: rightResult, rules: begunLeavesTorn},
	{Name: "set-up-keeps-finished", Means: "a new epoch does not clear the finished bits",
		Config: "restart", Breaks: noEarlyReuse, rules: setUpKeepsFinished},
	{Name: "end-at-first-finish", Means: "a job ends when one member has finished",
		Config: "evict-return", Breaks: noEarlyReuse, rules: endAtFirstFinish},
	{Name: "finish-forgotten", Means: "the card refuses a finish after the job's end",
		Config: "two-by-one", Harmless: "the refusal shows that the job has ended; a worker with all results needs no more", rules: finishForgotten},
	{Name: "same-epoch-return", Means: "a worker that lost its state returns in the same epoch",
		Config: "restart", Breaks: noEarlyReuse, rules: sameEpochReturn},
	{Name: "inputs-given-up", Means: "a worker keeps its input v only until it holds the result v",
		Config: "reset", Breaks: inputsThere, rules: giveUpInputs},
	{Name: "unstopped-workers", Means: "workers continue in the old epoch while the controller sets up the next",
		Config: "restart", Breaks: inputsThere, rules: unstoppedWorkers},
	{Name: "one-window-of-inputs", Means: "with partial sums, a worker keeps its input v only until it holds v + W",
		Config: "partial-reset", Breaks: inputsThere, rules: oneWindowOfInputs},

	{Name: "evicted-counts", Means: "a slot waits for an evicted member",
		Config: "evict", Breaks: progress, rules: evictedCounts},
	{Name: "evicted-heard", Means: "the card takes packets of an evicted member",
		Config: "evict", Breaks: summedOnce, rules: evictedHeard},
	{Name: "eviction-untold", Means: "the card does not notify an evicted member",
		Config: "evict", Breaks: progress, rules: evictionUntold},
	{Name: "evict-missing-only", Means: "a second deadline evicts only members missing from the sum",
		Config: "evict-rogue", Breaks: progress, rules: evictMissingOnly},
	{Name: "eviction-closes-slots", Means: "a slot that waited only for an evicted member is summed at once",
		Config: "evict", Harmless: "the slot's deadline would sum the same contributions", rules: evictionClosesSlots},
	{Name: "evict-unasked", Means: "the card evicts members that are not done though no member waits for the slot",
		Config: "evict", Breaks: forCause, rules: evictUnasked},
	{Name: "evict-one", Means: "the card evicts members that are not done one at a time",
		Config: "evict", Harmless: "the next deadline evicts the next", rules: evictOne},
	{Name: "evicted-finish-heard", Means: "after the job's end the card answers an evicted member's finish with done",
		Config: "evict", Harmless: "a worker that sends finish has all results", rules: evictedFinishHeard},
	{Name: "eviction-leaves-job", Means: "a job that waited only for the finish of an evicted member does not end",
		Config: "evict", Harmless: "a member that waits for a slot has not finished, so the job continues unless no member is left", rules: evictionLeavesJob},
	{Name: "eviction-drops-owed", Means: "the card no longer sends an evicted member the results that it was owed",
		Config: "evict", Harmless: "the card notifies it of its eviction", rules: evictionDropsOwed},
	{Name: "partial-unmarked", Means: "a partial sum names all members",
		Config: "partial", Breaks: summedOnce, rules: partialUnmarked},
	{Name: "deadline-of-any", Means: "a deadline makes a partial sum in a job that did not ask for partial sums",
		Config: "two-by-one", Breaks: summedOnce, rules: deadlineOfAny},

	{Name: "result-of-any-epoch", Means: "a worker takes results of another epoch",
		Config: "restart", Breaks: rightResult, rules: resultOfAnyEpoch},
	{Name: "result-before-sent", Means: "a worker takes results in its window for VIDs that it has not sent",
		Config: "partial", Harmless: "the result is right, and the worker still sends its late contribution", rules: resultBeforeSent},
	{Name: "result-of-any-vid", Means: "a worker takes any result as the first result that it lacks",
		Config: "two-by-one", Breaks: rightResult, rules: resultOfAnyVID},
}
