// Package collective runs all-reduce, reduce-scatter, all-gather and broadcast among the members of a
// group, which are processes on one machine or on several.
//
// Open joins a group whose members add on their hosts: by a ring, a binomial tree or a parameter
// server. OpenCard uses one card for all, OpenRina the cards of some racks in a ring, and OpenParallel
// a card between machines of several members. SPEC.md defines the orders of additions and the messages,
// and README.md is the page for users.
package collective
