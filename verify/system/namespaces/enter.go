//go:build linux

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

// insideVariable is set when the program is in a network namespace of its own.
const insideVariable = "TRIBUTARY_NAMESPACES_INSIDE"

// forbidden is the advice where the system allows no namespaces.
const forbidden = `; this system lets this user make no network namespace. Type one of these, and start again:
    sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0   # Ubuntu
    sudo sysctl kernel.unprivileged_userns_clone=1               # Debian before 11
    sudo sysctl user.max_user_namespaces=10000                   # others
or run it as root:
    sudo make demo-net`

// requireOwnNetwork starts this program again in a network namespace of its own, as `unshare -Urn`
// does. It returns nil in that namespace. As root it needs no user namespace.
func requireOwnNetwork() error {
	if os.Getenv(insideVariable) != "" {
		return nil
	}
	flags := "-Urn"
	if os.Geteuid() == 0 {
		flags = "-n"
	}
	unshare, err := exec.LookPath("unshare")
	if err != nil {
		return errors.New("unshare is missing; install util-linux")
	}
	if out, err := exec.Command(unshare, flags, "true").CombinedOutput(); err != nil {
		return fmt.Errorf("unshare %s: %w: %s%s", flags, err, bytes.TrimSpace(out), forbidden)
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	return syscall.Exec(unshare, append([]string{"unshare", flags, program}, os.Args[1:]...), append(os.Environ(), insideVariable+"=1"))
}
