//go:build !roce

package roce

import (
	"errors"

	"tributary/driver/transport/rdma"
)

// openVerbs returns an error: this program has no RDMA stack.
func openVerbs() (rdma.Stack, error) {
	return nil, errors.New("this program was built without libibverbs, which RDMA connections need; install it (apt install libibverbs-dev pkg-config) and build again (make build; a program of your own: go build -tags roce, with cgo)")
}
