// Package driver is the host side of Tributary: it opens a card by name, sets
// up a job on it and streams gradients through it.
//
//	card, err := driver.Open(ctx, "sim:tributary_l16_w4_fp32_tree")
//	job, err := card.Configure(ctx, driver.JobConfig{Workers: 4})
//	err = job.Reduce(ctx, sum, [][]float32{w0, w1, w2, w3})
//	err = job.Close(ctx)
//	err = card.Close()
//
// # Formats
//
// A card sums arrays of one format and answers in the same or in a wider one;
// Card.Info says which. The methods Reduce and AllReduce are for fp32, the
// functions of the same names for arrays of any format (see Element), and
// ReduceBytes and AllReduceBytes for arrays as they travel. Package element divides
// a sum into a mean, and package quant lets fp32 travel as int32.
//
// A Card has one goroutine that reads its link and one that writes it. The
// reader never waits for the writer, so a card that stops reading while it
// waits to be read cannot block the two of them. Everything else runs in the
// goroutine of the caller.
//
// # Names
//
// A card's name is a scheme and an address: "model:" (the Go model, needs no
// hardware), "model:OPTION=VALUE,..." (the same with the sizes, format and sum
// given, as in "model:format=bf16,result=fp32,sum=exact"; the options are called
// as hwgen's flags: lanes, workers, format, result, sum, saturate, chunk, window,
// jobs), "model:DIR" (the model of the card that the manifest in DIR describes),
// "sim:DIR" (starts the virtual card built in DIR), "tcp:HOST:PORT" and
// "unix:PATH" (a card that is running already), "serial:PORT" and "serial:PORT@BAUD"
// (a card behind a serial port of Linux), and in programs that import
// tributary/driver/transport/usb also "usb:" and "usb:VENDOR:PRODUCT#SERIAL" (a
// card that is plugged in), and "ftdi:" and "ft60x:" (a card behind a FIFO bridge).
// Package transport holds the schemes; a program can register its own.
//
// # Several jobs
//
// A card holds up to Info.Jobs jobs at once, under numbers from 0. Each Configure
// sets up one more, for any goroutine to use as if the card were its own: a job
// has its members, its window and its epochs, it ends for itself, and what the
// others do changes none of its bits. Jobs share the card's slots (twice as many
// as its largest window has chunks), of which each takes twice its window until
// it ends; by default a job gets its share, so that there is room for all. What
// finds no room is refused with a FullError. Frames of all jobs take turns on the
// link. A card that holds one job gives it to whoever calls Configure last.
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
// Every failure is of a type that a program can tell apart with errors.As:
// NoCardError, BusyError, VersionError and HashError from Open; InputError for
// arguments that are refused before the card is touched; FullError for a job that
// finds no room beside others; RefusedError for what the card refuses;
// MissingError and TimeoutError when nothing moves; EvictedError for a member that
// is out of a job whose sums may be partial; EndedError when the job is over;
// StoppedError, or another that wraps it, from the call whose context has ended, and
// from no other: those of the same job find a GivenUpError in their EndedError;
// DiedError when the card is gone, LostError (which is one) when it was
// waited for in vain or has come back as another. ErrClosed is what a closed Card
// answers.
package driver
