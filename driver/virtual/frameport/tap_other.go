//go:build !linux

package frameport

import "errors"

func openTAP(string) (Port, error) { return nil, errors.New("TAP devices exist on Linux only") }
