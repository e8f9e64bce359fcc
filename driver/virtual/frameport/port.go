package frameport

import (
	"fmt"
	"io"
	"strings"
)

// Port is a frame port. One goroutine may call ReadFrame and another WriteFrame at the same time. Close
// ends calls in progress.
type Port interface {
	// Name returns the name by which Open made the port.
	Name() string

	// ReadFrame waits for a frame, with its FCS, and returns its size. A frame that is longer than
	// frame is cut.
	ReadFrame(frame []byte) (n int, err error)

	// WriteFrame sends a frame with its FCS. A frame that nobody takes is no error.
	WriteFrame(frame []byte) error

	io.Closer
}

// Open makes a port by its name, unix:PATH or tap:NAME.
func Open(name string) (Port, error) {
	if err := CheckName(name); err != nil {
		return nil, err
	}
	scheme, place, _ := strings.Cut(name, ":")
	if scheme == "tap" {
		return openTAP(place)
	}
	return openUnix(place)
}

// CheckName refuses a name that no port has.
func CheckName(name string) error {
	scheme, place, _ := strings.Cut(name, ":")
	if place == "" || scheme != "unix" && scheme != "tap" {
		return fmt.Errorf("%q must be unix:PATH or tap:NAME", name)
	}
	return nil
}
