package main

// #include "shim.h"
import "C"

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
	"unsafe"

	"tributary/driver"
)

var (
	errHandle  = errors.New("it is closed, or not a handle of this kind")
	errRunning = errors.New("the reduction goes on; wait again")
)

// report runs f and reports its error to C.
func report(to *C.struct_failure, f func() error) (kind C.int) {
	defer func() {
		if cause := recover(); cause != nil {
			kind = describe(to, fmt.Errorf("a defect of this library: %v", cause))
		}
	}()
	return describe(to, f())
}

// describe fills in the failure of an error, and returns its kind.
func describe(to *C.struct_failure, err error) C.int {
	if err == nil {
		return C.TRIBUTARY_OK
	}
	kind, ranks := kindOf(err)
	for _, rank := range ranks {
		to.ranks |= 1 << rank
	}
	text := []byte(strings.ToValidUTF8(strings.ReplaceAll(err.Error(), "\n", "; "), "?"))
	for len(text) >= len(to.text) {
		_, size := utf8.DecodeLastRune(text)
		text = text[:len(text)-size]
	}
	copy(unsafe.Slice((*byte)(unsafe.Pointer(&to.text)), len(to.text)), append(text, 0))
	return kind
}

// kindOf returns the kind of an error, and the ranks that it names. The cause of an EndedError
// decides, if it has a kind of its own.
func kindOf(err error) (kind C.int, ranks []int) {
	if e, ok := errors.AsType[*driver.MemberLostError](err); ok {
		return C.TRIBUTARY_ERROR_MEMBER_LOST, e.Ranks
	}
	if e, ok := errors.AsType[*driver.CallsDifferError](err); ok {
		return C.TRIBUTARY_ERROR_CALLS_DIFFER, e.Ranks
	}
	if e, ok := errors.AsType[*driver.NotStartedError](err); ok {
		return C.TRIBUTARY_ERROR_NOT_STARTED, e.Missing
	}
	if e, ok := errors.AsType[*driver.MissingError](err); ok {
		return C.TRIBUTARY_ERROR_MISSING, e.Ranks
	}
	if e, ok := errors.AsType[*driver.EvictedError](err); ok {
		return C.TRIBUTARY_ERROR_EVICTED, []int{e.Rank}
	}
	for _, k := range kinds {
		if k.is(err) {
			return k.kind, nil
		}
	}
	return C.TRIBUTARY_ERROR_OTHER, nil
}

// kinds are the kinds without ranks. The first one that matches counts.
var kinds = []struct {
	kind C.int
	is   func(error) bool
}{
	{C.TRIBUTARY_ERROR_RUNNING, is(errRunning)},
	{C.TRIBUTARY_ERROR_CLOSED, is(errHandle)},
	{C.TRIBUTARY_ERROR_CLOSED, is(driver.ErrClosed)},
	{C.TRIBUTARY_ERROR_RESULT_LOST, as[*driver.ResultLostError]},
	{C.TRIBUTARY_ERROR_LOST, as[*driver.LostError]},
	{C.TRIBUTARY_ERROR_DIED, as[*driver.DiedError]},
	{C.TRIBUTARY_ERROR_TIMEOUT, as[*driver.TimeoutError]},
	{C.TRIBUTARY_ERROR_CANCELED, is(context.Canceled)},
	{C.TRIBUTARY_ERROR_ENDED, as[*driver.EndedError]},
	{C.TRIBUTARY_ERROR_BUSY, as[*driver.BusyError]},
	{C.TRIBUTARY_ERROR_INCOMPATIBLE, as[*driver.VersionError]},
	{C.TRIBUTARY_ERROR_INCOMPATIBLE, as[*driver.HashError]},
	{C.TRIBUTARY_ERROR_NO_CARD, as[*driver.NoCardError]},
	{C.TRIBUTARY_ERROR_FULL, as[*driver.FullError]},
	{C.TRIBUTARY_ERROR_REFUSED, as[*driver.RefusedError]},
	{C.TRIBUTARY_ERROR_REFUSED, as[*driver.JoinError]},
	{C.TRIBUTARY_ERROR_INPUT, as[*driver.InputError]},
}

func is(target error) func(error) bool {
	return func(err error) bool { return errors.Is(err, target) }
}

func as[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}
