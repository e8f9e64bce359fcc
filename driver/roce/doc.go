// Package roce sums over RDMA connections, through a card under RoCEv2 (driver/wire/ROCE.md) that
// `tributary serve` owns. A program imports it for its effect, the scheme roce:
//
//	card, err := driver.Open(ctx, "roce:unix:/run/tributary.sock")
//	job, err := card.Configure(ctx, driver.JobConfig{Workers: 4, Here: []int{0}})
//	err = job.Member(0).AllReduce(ctx, gradients) // other processes: driver.Join(ctx, job.Ticket(), driver.AnyRank)
//
// Names are those of serve: (package transport/serve), with the other scheme. Jobs, members and errors are
// the driver's. Each rank calls for itself. The elements go from the machine's RDMA device to the card and
// back, and pass neither the daemon nor its connections.
//
// The scheme needs libibverbs and Linux: build the program with the tag roce, and cgo. Environment variables
// choose the device: TRIBUTARY_ROCE_DEVICE its name, as in rxe0; TRIBUTARY_ROCE_ADDRESS its IPv4 address.
// The default is the first device with an IPv4 address. OpenOver takes another stack.
//
// The folder has the C library for programs without Go as well: tributary_roce.h.
package roce
