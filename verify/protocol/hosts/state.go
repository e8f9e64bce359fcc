package main

// Sizes of the largest configuration. The last owner and the last members are the reserve that comes
// when faults have stopped.
const (
	maxOwners  = 4
	maxMembers = 8
	maxSetups  = 4
	ranks      = 2
)

// address is the IPv4 address and UDP port of a process, from 1; 0: none.
type address int8

// foreign is the stranger's address.
const foreign address = 100

// state is all that the world remembers. It is comparable.
type state struct {
	card    card
	owners  [maxOwners]owner
	members [maxMembers]member
	left    failures
}

// failures are how often each may still happen.
type failures struct{ owners, members, power int8 }

// entries are what a commit copies into the address table, by rank.
type entries [ranks]address

// values are what a host stages for a commit besides the token. setting stands for JOB_CHUNK: the card
// refuses data of another size, but no register shows it of a running job.
type values struct {
	members entries
	setting int8
}

// card is what the card holds. A commit that has begun holds the staged values until it finishes.
type card struct {
	owner int8    // the token in OWNER; 0: free
	from  address // the owner's address

	token  int8 // JOB_TOKEN
	staged values

	committer int8 // the token that a commit began with; 0: no commit is under way
	commit    job
	last      int8 // last epoch; 0: none
	up        bool
	job       job
	held      [ranks]contribution
	summed    bool
}

// job is a job on the card. The card knows epoch and values alone; by and setup tell the properties
// whose commit it was.
type job struct {
	epoch  int8
	values values
	by     int8 // the owner's life
	setup  int8
}

// contribution is what a slot holds of a rank: 1 + the life of a member, and the set-up that it was for.
type contribution struct{ member, setup int8 }

// stranger is the member of a contribution that no member sent.
const stranger = 1 + maxMembers

// ownerPhase is how far an owner's life has come.
type ownerPhase uint8

const (
	unborn    ownerPhase = iota
	wanting              // it has written OWNER, and has not read its token there
	owning               // it has read its token, and nothing is staged
	staged               // its writes are answered
	asking               // it has read them back, and its commit is under way
	committed            // its commit was answered done
	using                // it has found its job on the card, and has told its members
	gone                 // it is dead, has released the card, or has lost it
)

// owner is a life of an owner. Sets of packets have a bit for each set-up.
type owner struct {
	phase  ownerPhase
	job    int8        // of its jobs
	seats  [ranks]int8 // 1 + the members of its job that have joined; 0: none
	setup  int8        // its current attempt
	setups [maxSetups]setup

	took, wroteToken, released bool  // packets that it has sent
	wrote, asked, aborted      uint8 // staged values, JOB_COMMIT, JOB_ABORT
	results                    uint8 // of its jobs: sent by the card
}

// setup is an attempt to set a job up.
type setup struct {
	epoch int8 // 0: not begun
	job   int8
	seats [ranks]int8
}

// memberPhase is how far a member's life has come.
type memberPhase uint8

const (
	away   memberPhase = iota
	joined             // it has a seat, and knows no epoch
	told               // it knows an epoch
	dead
)

// member is a life of a member.
type member struct {
	phase memberPhase
	by    int8  // the owner that it has joined
	setup int8  // that it was told of
	got   bool  // it has the result: once faults have ceased alone
	sent  uint8 // data, a bit for each set-up
}

func bit(n int8) uint8 { return 1 << n }
