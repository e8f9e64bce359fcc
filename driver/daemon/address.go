package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"tributary/driver/transport"
)

// Listen listens at unix:PATH or tcp:HOST:PORT. A Unix socket has mode 0600 from its first moment. It
// replaces the socket of a daemon that has died; that of another program is an error. A socket that is no
// file (unix:@NAME) is one as well: it has no mode, so that all users of the machine could connect.
func Listen(ctx context.Context, address string) (net.Listener, error) {
	scheme, at, _ := strings.Cut(address, ":")
	switch scheme {
	case "tcp":
		return new(net.ListenConfig).Listen(ctx, "tcp", at)
	case "unix":
		return listenUnix(ctx, at)
	}
	return nil, fmt.Errorf("%s: an address is unix:PATH or tcp:HOST:PORT", address)
}

func listenUnix(ctx context.Context, path string) (net.Listener, error) {
	switch {
	case path == "":
		return nil, errors.New("unix: lacks the path of the socket; name it, as in unix:PATH")
	case path[0] == '@':
		return nil, fmt.Errorf("unix:%s is a socket without a file, to which all users could connect; name a file, as in unix:./%s", path, path)
	}
	if err := transport.CheckSocket(path); err != nil {
		return nil, err
	}
	unlock, err := lock(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := removeStale(ctx, path); err != nil {
		return nil, err
	}
	config := net.ListenConfig{Control: private}
	return config.Listen(ctx, "unix", path)
}

// CheckCard refuses the name of a card that a daemon shares already (serve:, roce:).
func CheckCard(name string) error {
	if scheme, _, _ := strings.Cut(name, ":"); scheme == "serve" || scheme == "roce" {
		return fmt.Errorf("%s: a daemon shares this card already; let clients open it under this name", name)
	}
	return nil
}

// lock keeps other daemons from replacing sockets of a folder at the same time.
func lock(dir string) (unlock func(), err error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("%w; make the folder first", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		f.Close()
		return nil, fmt.Errorf("lock %s: %w", dir, err)
	}
	return func() { f.Close() }, nil
}

// removeStale removes a socket at which nobody listens. Anything else at the path is an error.
func removeStale(ctx context.Context, path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode().Type() != fs.ModeSocket:
		return fmt.Errorf("%s exists and is not a socket; name another path", path)
	}
	conn, err := new(net.Dialer).DialContext(ctx, "unix", path)
	switch {
	case err == nil:
		conn.Close()
		return fmt.Errorf("another program listens at %s; stop it, or listen at another path", path)
	case errors.Is(err, syscall.ECONNREFUSED):
		return os.Remove(path)
	}
	return err
}

// private gives a socket that is not bound yet the mode of its file. The process's umask stays as it
// is: other goroutines create files meanwhile.
func private(_, _ string, socket syscall.RawConn) error {
	var changed error
	err := socket.Control(func(fd uintptr) { changed = syscall.Fchmod(int(fd), 0o600) })
	return errors.Join(err, changed)
}
