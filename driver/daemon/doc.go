// Package daemon shares cards among processes: SPEC.md, in this folder, defines what it and its
// clients send each other, and says what is not written yet.
//
// A Server has cards, each open in this process. Processes open sessions (session.go) and take seats
// in jobs (job.go). A job is a driver.Relay: its members' frames pass through as they are, and results
// go to the sessions that hold a seat they are for. The daemon keeps the last results of a job
// (kept.go), compares the calls that seats announce (calls.go), and leads the members from one epoch
// to the next (epoch.go). Cards in this process, and trees of cards, take arrays instead: the daemon is the
// host of all their members (arrays.go). Frames of clients on this machine lie in memory that they share with
// the daemon (rings.go, package ring).
//
// Clients are not trusted: trust.go decides where a Server may listen and whom it lets in, limits.go
// bounds what clients take, connections.go tells their connections apart. Operators see what happens in
// metrics.go and health.go; README.md is their page.
//
// A card's mutex guards its jobs, seats and sessions. It is not held while anything waits.
package daemon
