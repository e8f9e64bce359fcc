// Package membership keeps what the members of a group agree on: keys, leases and transactions, as etcd
// does. It is in memory, behind a Unix socket, or etcd itself (package etcd, registered by import). No
// consensus is implemented here. The specification is section 2 of driver/collective/elastic/SPEC.md.
package membership
