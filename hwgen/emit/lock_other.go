//go:build !unix

package emit

import "context"

// lock does nothing: this system has no locks of folders.
func lock(context.Context, string) (unlock func(), err error) { return func() {}, nil }
