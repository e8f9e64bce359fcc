// Command capi is the library libtributary.so: package driver for programs in C, and in languages that
// call C. tributary.h documents it.
//
//	go build -buildmode=c-shared -o libtributary.so ./driver/capi
//
// shim.c has the functions of tributary.h. They call the exported Go functions of this package, which
// run in the caller's thread. An object is known to C by its handle, a number.
package main

// #cgo CFLAGS: -std=gnu11 -O2 -fvisibility=hidden -Wall -Wextra
// #include "shim.h"
import "C"

import (
	"context"
	"fmt"
	"sync"
	"unsafe"

	"tributary/driver"
	_ "tributary/driver/transport/serve" // registers its scheme
)

func main() {}

// background is the context of calls from C: the card's timeout limits them.
var background = context.Background()

// handles are the open objects by handle. Handles are not used again.
var handles = struct {
	sync.Mutex
	last    uintptr
	objects map[uintptr]any
}{objects: map[uintptr]any{}}

// publish gives an object a handle, and writes it to where C wants it.
func publish(object any, to *C.uintptr_t) {
	handles.Lock()
	defer handles.Unlock()
	handles.last++
	handles.objects[handles.last] = object
	*to = C.uintptr_t(handles.last)
}

// find returns the object of a handle.
func find[T any](handle C.uint64_t) (T, error) {
	handles.Lock()
	defer handles.Unlock()
	object, ok := handles.objects[uintptr(handle)].(T)
	if !ok {
		return object, fmt.Errorf("handle %d: %w", handle, errHandle)
	}
	return object, nil
}

// with runs f with the object of a handle, and reports its error to C.
func with[T any](to *C.struct_failure, handle C.uint64_t, f func(T) error) C.int {
	return report(to, func() error {
		object, err := find[T](handle)
		if err != nil {
			return err
		}
		return f(object)
	})
}

// forget closes a handle.
func forget(handle C.uint64_t) {
	handles.Lock()
	defer handles.Unlock()
	delete(handles.objects, uintptr(handle))
}

// memory returns elements of an array of the caller as bytes.
func memory(what string, array unsafe.Pointer, elements C.size_t, size int) ([]byte, error) {
	const most = 1 << 56 // bytes; no processor has as many
	if uint64(elements) > most/uint64(size) {
		return nil, &driver.InputError{What: what, Why: fmt.Sprintf("%d elements are more than memory can hold", elements)}
	}
	return unsafe.Slice((*byte)(array), int(elements)*size), nil
}
