package reduction

import (
	"time"

	"tributary/driver"
	"tributary/driver/wire"
)

// Op is the operation on the elements of all workers.
type Op string

const (
	Sum  Op = "sum"  // as the card sums
	Mean Op = "mean" // the card's sum, divided by the number of workers and rounded once more
)

// Options are the options of a reduction. The zero value sums the arrays.
type Options struct {
	Op     Op          // Sum when empty
	Format wire.Format // of the elements; 0: determined by their type, which uint16 and uint8 do not

	Quantize bool // send float32 as int32, through a card that sums int32
	Block    int  // elements that share an exponent, with Quantize; 0: the job's chunk

	Verify        bool          // compare every bit of the sum with the Go model's
	FailNonfinite bool          // fail on a NaN, an infinity or an overflow
	Stats         bool          // measure: Report.Stats
	Timeout       time.Duration // of the model of Verify, and of Run's card; 0: driver.DefaultTimeout

	Ports  []int // of the workers, ascending; empty: the lowest ones
	Chunk  int   // elements; 0: the card's maximum
	Window int   // chunks in flight, a power of two; 0: the card's maximum

	CarryOn  time.Duration // wait this long for a card that disconnects; 0: fail
	Deadline time.Duration // report chunks that wait longer than this; 0: none
	Partial  bool          // sum such chunks without the late workers

	// The callbacks, each nil, or called by one goroutine at a time. They must return quickly, because
	// the reduction waits.
	OnProgress func(done, total int) // elements summed, per array
	OnOutage   func(driver.Outage)   // the card has disconnected, or is back
	OnOverdue  func(driver.Overdue)  // a chunk waits for workers; once until chunk or workers change
}

// MaxPorts is the largest number of ports that a card can have.
const MaxPorts = 64

// Check refuses options that are invalid for all arrays and cards. workers is 0 if their number is
// unknown. The error is an OptionError.
func (o Options) Check(workers int) error {
	if o.Op != "" && o.Op != Sum && o.Op != Mean {
		return badOption("op", "%s: it must be sum or mean", o.Op)
	}
	switch {
	case o.CarryOn < 0:
		return badOption("carry-on", "%s: it must be more than zero", o.CarryOn)
	case o.CarryOn > 0 && o.FailNonfinite:
		return wrongOption("fail-nonfinite", "it cannot be used with ${carry-on}: a card that returns has lost its counts")
	}
	if err := o.checkDeadline(); err != nil {
		return err
	}
	if o.Block != 0 && !o.Quantize {
		return wrongOption("block", "it needs ${quantize}")
	}
	if o.Block < 0 {
		return badOption("block", "%d: it must be more than zero", o.Block)
	}
	if o.Timeout < 0 {
		return badOption("timeout", "%s: it must be more than zero", o.Timeout)
	}
	return CheckJob(workers, o.Ports, o.Window)
}

func (o Options) checkDeadline() error {
	switch {
	case o.Deadline < 0:
		return badOption("deadline", "%s: it must be more than zero", o.Deadline)
	case o.Partial && o.Deadline == 0:
		return wrongOption("partial", "it needs ${deadline}")
	case o.Partial && o.Quantize:
		return wrongOption("partial", "it cannot be used with ${quantize}, whose scales cover all workers")
	case o.Partial && o.Verify:
		return wrongOption("partial", "it cannot be used with ${verify}, which sums all workers' arrays")
	}
	return nil
}

// CheckJob refuses ports and a window that are invalid for that many workers on every card; workers
// is 0 if their number is unknown. The error is an OptionError.
func CheckJob(workers int, ports []int, window int) error {
	switch {
	case workers > MaxPorts:
		return &OptionError{Option: "workers", words: say("%d workers; a card has at most %d ports", workers, MaxPorts)}
	case workers > 0 && len(ports) > 0 && len(ports) != workers:
		return &OptionError{Option: "ports", words: say("${ports} names %d ports for %d workers", len(ports), workers)}
	case window < 0 || window&(window-1) != 0:
		return badOption("window", "%d: it must be a power of two", window)
	}
	for i, p := range ports {
		if p < 0 || p >= MaxPorts {
			return wrongOption("ports", "%d is no port; ports are 0 to %d", p, MaxPorts-1)
		}
		if i > 0 && p <= ports[i-1] {
			return wrongOption("ports", "they must ascend, but %d follows %d", p, ports[i-1])
		}
	}
	return nil
}

// PortsNeeded returns the number of ports that a card needs for that many workers on the given
// ports, or on the lowest ones if ports is empty.
func PortsNeeded(workers int, ports []int) int {
	if len(ports) > 0 {
		return ports[len(ports)-1] + 1
	}
	return workers
}

// divisor returns the divisor of the sums of n workers.
func (o Options) divisor(n int) int {
	if o.Op == Mean {
		return n
	}
	return 1
}

// timeout returns the timeout for the cards that this package opens.
func (o Options) timeout() time.Duration {
	if o.Timeout == 0 {
		return driver.DefaultTimeout
	}
	return o.Timeout
}
