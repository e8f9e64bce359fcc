package main

import "tributary/verify/protocol/explorer"

// ruleSet is a set of rules that are left out or changed.
type ruleSet = explorer.Rules

// One bit for each rule of card and worker. The comment gives the behaviour without it.
const (
	// Slots and evidence.
	slotsShort       ruleSet = 1 << iota // 2W - 1 slots
	noEvidence                           // PSN v does not show that its connection's receiver has v - W
	evidenceOfOther                      // ... it shows that also of the connection on which the rank receives
	evidenceMoved                        // ... it shows that instead
	evidenceOfAll                        // the connections share one done bit
	turnoverUndone                       // a slot turns over whoever is done
	anyExtension                         // a PSN is extended upwards from the newest VID
	storeBeforeICRC                      // a packet counts before its ICRC holds
	refusedForwarded                     // a data packet that the card refuses goes on as it came
	endForgets                           // the end of a job removes its connections
	waitingForwarded                     // a repeat that the card does not answer goes on as it came

	// Headers.
	refusedSetsHeader   // a packet that the slot rules refuse sets the header of its slot
	damagedSetsHeader   // a packet whose ICRC does not hold sets the header
	headerStays         // an accepted repeat leaves the header
	anyHeader           // a sum leaves in the slot's header, whatever VID that is of
	turnoverKeepsHeader // a turnover keeps the headers

	// Release.
	noReplay        // a repeat of a released VID draws no answer
	repeatAhead     // a repeat of a VID that is summed is answered before its turn
	exceptionToAll  // a connection gets k + 1 early though its rank has contributed k
	completionOrder // sums leave in the order in which they were made
	strictOrder     // nothing leaves early
	earlyMoves      // what left early does not leave again in its turn
	earlyAgain      // each packet that arrives may release it early again

	// Workers.
	receivedAlone  // the window's clock is the result m - C alone
	completedAlone // the window's clock is the own send m - C alone
	oneAhead       // a worker has one message more in flight
	leaveComplete  // a queue pair goes when its own rank has received and completed everything
	leaveReceived  // ... when its own rank has received everything

	lastRule = leaveReceived
)

// without reports whether a rule is left out.
func (w *world) without(rule ruleSet) bool { return w.rules&rule != 0 }
