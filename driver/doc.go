// Package driver is the host side of Tributary. It opens a card by name, sets up a job
// on it and streams gradients through it.
//
//	card, err := driver.Open(ctx, "sim:tributary_l16_w4_fp32_tree")
//	job, err := card.Configure(ctx, driver.JobConfig{Workers: 4})
//	err = job.Reduce(ctx, sum, [][]float32{w0, w1, w2, w3})
//	err = job.Close(ctx)
//	err = card.Close()
//
// # Formats
//
// A card sums arrays of one format. Its results have the same format or a wider one;
// Card.Info returns both. The methods Reduce and AllReduce take fp32. The functions of
// the same names take arrays of any format (see Element). ReduceBytes and AllReduceBytes
// take encoded arrays. WithMean divides the sums by the number of members, and package
// quant sends fp32 as int32.
//
// # Goroutines
//
// A Card has one goroutine that reads its link and one that writes it. The reader never
// waits for the writer. A card that stops reading until the host reads therefore cannot
// deadlock them. Everything else runs in the caller's goroutine.
//
// # Calls that queue
//
// StartReduce and StartAllReduce return a Pending at once. The calls of a member queue in the order
// of their starts, and their chunks follow one another through the window, so the card has work
// while the caller does something else. All members start the same calls in the same order. A
// member has either calls of its own or calls of all ranks in progress, not both.
//
// # Names
//
// A card's name is a scheme and an address:
//
//   - "cpu:": a card in software, in this process, at the speed of memory
//   - "cpu:OPTION=VALUE,...": the same with these options, for example
//     "cpu:format=bf16,result=fp32,sum=exact". The options have the names of hwgen's
//     flags: lanes, workers, format, result, sum, saturate, chunk, window, jobs. parent=true
//     is for NewNetworkCard alone.
//   - "cpu:DIR": a card in software like the one that the manifest in DIR describes
//   - "model:", with the same options: the Go model, the reference for all cards
//   - "sim:DIR": the virtual card built in DIR, which Open starts
//   - "tcp:HOST:PORT" and "unix:PATH": a running card
//   - "serial:PORT" and "serial:PORT@BAUD": a card on a serial port, on Linux
//
// Programs that import tributary/driver/transport/usb have three more schemes:
//
//   - "usb:" and "usb:VENDOR:PRODUCT#SERIAL": a card on USB
//   - "ftdi:" and "ft60x:": a card behind a FIFO bridge
//
// Programs that import tributary/driver/roce have one for RDMA connections through a card under RoCEv2:
//
//   - "roce:unix:PATH" and "roce:HOST:PORT": the card of a daemon, as with the scheme serve
//
// Package transport holds the schemes; a program can register its own.
//
// # Several jobs
//
// A card holds up to Info.Jobs jobs at once, numbered from 0. Each Configure sets up one
// more. A job has its own members, window and epochs. Other jobs do not affect its
// results. Any goroutine can use a job as if it had the card to itself.
//
// Jobs share the card's slots: twice as many as the largest window has chunks. Each job
// takes twice its window until it ends. The default window is an equal share, which
// leaves room for every job. Configure returns a FullError when there is no room. Jobs
// take turns on the link, frame by frame. On a card that holds one job, Configure
// replaces the job before.
//
// # Several trees
//
// A forest (ConfigureForest) spreads the chunks of each reduction over several cards, by a
// schedule. Each card has a job of its own. When a card dies, the calls fail, or its chunks
// move to the other cards (ForestConfig.Move). A forest of trees of cards (NewTree) has one
// job on each tree.
//
// # Late workers
//
// A job can give its chunks a deadline (JobConfig.Deadline). The card then reports the
// ranks that an overdue chunk waits for. With JobConfig.Partial it sums the chunk
// without the late ranks instead. Partials returns, after a call, which sums lack which
// ranks; all members get the same sums. A member that blocks the others for a second
// deadline is evicted: its calls return EvictedError, and the others continue.
// Card.Lags reads the lateness of each rank.
//
// # A card that goes away
//
// A card is gone when its link breaks, its process ends, or it is silent for the
// timeout. By default its jobs then fail with DiedError. With JobConfig.CarryOn a job
// waits for the card, opens it again by its name and checks the configuration hash. It
// continues in a later epoch from the first missing result. Calls do not notice the
// outage, and every bit of the results is as without it. The job does not ask again for
// results that it has.
//
// This works within one process, for one Card and the calls of its members. They share
// received results, and the arrays of unfinished calls may have to be sent again. A card
// has one host at a time, so a job has no members elsewhere, and a program that ended
// cannot carry on. The card's counts (Card.Counters, Job.Exceptions) are lost. The
// driver opens the card once for all waiting jobs; each waits for its own time.
//
// # Errors
//
// Every failure has a type that errors.As finds:
//
//   - NoCardError, BusyError, VersionError, HashError: from Open
//   - InputError: an argument is wrong; the card has not been touched
//   - FullError: the card has no room for another job
//   - RefusedError: the card refused a register access or a packet
//   - MissingError, TimeoutError: nothing has moved for the timeout
//   - EvictedError: the member has left a job whose sums may be partial
//   - EndedError: the job is over
//   - StoppedError, or another type that wraps the context's error: the context of this
//     call has ended. Other calls of the job find a GivenUpError in their EndedError.
//   - DiedError: the card is gone; with a LeaseLostError in it, a card on a network has
//     another owner now, or none
//   - LostError: a DiedError of a card that did not come back in time, or that came back
//     as another card
//
// A closed Card returns ErrClosed.
package driver
