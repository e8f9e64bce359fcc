package main

import (
	"context"
	"errors"
	"fmt"

	"tributary/driver"
	"tributary/driver/transport"
)

// The exit statuses. The command's help lists them.
const (
	statusDone     = 0
	statusFailed   = 1
	statusUsage    = 2
	statusNoCard   = 3
	statusTimedOut = 4
)

// usageError is an error in the command line.
type usageError struct{ error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// explain returns the exit status for err, and the text to print. ctx is the command's: if a signal
// has ended it, the signal is the reason, whatever failed as a result. writes means that the
// command has an output (-o), which was then not written.
func explain(ctx context.Context, err error, writes bool) (status int, text string) {
	if gaveUp, ok := err.(*gaveUpError); ok {
		return statusFailed, gaveUp.Error()
	}
	if ctx.Err() != nil {
		text = fmt.Sprintf("stopped, %v", context.Cause(ctx))
		if writes {
			text += "; no output file was written"
		}
		return statusFailed, text
	}
	var usage usageError
	var rank *rankError
	var timeout interface{ Timeout() bool }
	switch {
	case errors.As(err, &rank):
		return rank.status, rank.text
	case errors.As(err, &usage):
		return statusUsage, err.Error()
	case isNoCard(err):
		return statusNoCard, err.Error()
	case errors.As(err, &timeout) && timeout.Timeout():
		return statusTimedOut, err.Error()
	}
	return statusFailed, err.Error()
}

// isNoCard reports whether the name has no card, or a card that this program does not support.
func isNoCard(err error) bool {
	var none *driver.NoCardError
	var version *driver.VersionError
	var hash *driver.HashError
	var other *driver.OtherCardError
	var scheme *transport.SchemeError
	return errors.As(err, &none) || errors.As(err, &version) || errors.As(err, &hash) || errors.As(err, &other) || errors.As(err, &scheme)
}
