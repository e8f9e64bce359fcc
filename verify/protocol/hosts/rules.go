package main

import "tributary/verify/protocol/explorer"

// ruleSet is a set of rules that are left out or changed.
type ruleSet = explorer.Rules

// The comment gives the behaviour without the rule.
const (
	anyAddress        ruleSet = 1 << iota // the card takes writes from any address
	releaseAnyAddress                     // RELEASE and RESET with the right token count from any address
	releaseAnyToken                       // RELEASE and RESET count with any token
	stagedStays                           // a new owner finds what the last one has staged
	takeAny                               // a write of OWNER takes a card that has an owner
	tokenUnchecked                        // commit and abort do not compare JOB_TOKEN with OWNER
	ownerUnchecked                        // a commit that finishes sets up, whoever has the card
	overtaken                             // accesses take effect during a commit, which uses the values at its end
	sameEpochAgain                        // a repeated commit sets the job up again
	anyOlderEpoch                         // a commit of an older epoch sets up
	membersUnchecked                      // a commit does not check the members' addresses
	tableNotCompared                      // a commit of the running epoch with other members is done
	abortAnyEpoch                         // an abort ends the job whatever its epoch
	leaseForEver                          // the lease never ends
	leaseByData                           // data restarts the lease
	leaseKeepsJob                         // the end of the lease leaves the job
	releaseKeepsJob                       // RELEASE leaves the job
	anySender                             // the card takes the rank from the header alone
	anyEpoch                              // the card takes data of any epoch
	anySize                               // the card takes data of another size
	notUp                                 // the card takes data of a job that has ended
	heldStays                             // a set-up leaves what the slots hold
	tableAtOnce                           // a MEMBER write changes the running job, for a member that returns
	samePort                              // all lives of owners have one UDP port
	sameToken                             // all lives of owners have one token
	tokenOnce                             // an owner writes JOB_TOKEN for its first set-up alone
	noReadBack                            // an owner does not read back what it has staged
	noVerify                              // an owner does not read its job's registers after the commit
	takenUnread                           // an owner that has written OWNER does not read it
	neverLooks                            // an owner that uses its job reads OWNER alone
	lookAtState                           // an owner that uses its job reads JOB_STATE, and not JOB_ADDRESS
	epochOfCard                           // an owner takes JOB_STATE's last epoch + 1, whatever its own was
	sameEpochRetried                      // an owner whose set-up was refused or went wrong commits the same epoch again
	lossUnnoticed                         // an owner goes on though OWNER has another token
	toldBeforeDone                        // an owner tells its members before the commit is answered
	sizeUnheard                           // an owner does not set up again when a member's data has the wrong size
	anyNonce                              // an owner takes a Join with any ticket
	memberPort                            // a member uses one UDP port for all its Joins
	resultAnyEpoch                        // a member takes results of any epoch
	lastRule          = resultAnyEpoch
)
