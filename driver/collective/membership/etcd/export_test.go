package etcd

import "tributary/driver/collective/membership"

// Leases counts the leases that an engine keeps alive, or has to revoke.
func Leases(e membership.Engine) int {
	kept := e.(*engine)
	kept.mu.Lock()
	defer kept.mu.Unlock()
	return len(kept.leases)
}
