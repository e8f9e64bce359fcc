//go:build unix

package emit

import (
	"context"
	"errors"
	"os"
	"syscall"
	"time"
)

// turnPoll is the time between two looks whether another Write has ended.
const turnPoll = 10 * time.Millisecond

// lock waits until no other Write works in a folder, and returns a function that ends this one's turn. It
// does nothing where a file system has no locks, or the folder cannot be read.
func lock(ctx context.Context, folder string) (unlock func(), err error) {
	f, err := os.Open(folder)
	if err != nil {
		return func() {}, nil
	}
	for errors.Is(syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB), syscall.EWOULDBLOCK) {
		select {
		case <-time.After(turnPoll):
		case <-ctx.Done():
			f.Close()
			return nil, ctx.Err()
		}
	}
	return func() { f.Close() }, nil
}
