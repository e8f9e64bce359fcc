// Package elastic runs all-reduce among members that come and go: an engine (package membership) keeps who
// they are, one of them writes plans, and a call that a failure interrupts runs again in the next generation
// or fails on all members. SPEC.md is the specification.
package elastic
