package main

// #include "shim.h"
import "C"

import (
	"fmt"
	"time"

	"tributary/driver"
	"tributary/driver/element"
	"tributary/driver/wire"
)

// card is an open card and its reductions.
type card struct {
	*driver.Card
	running reductions
}

//export goOpen
func goOpen(to *C.struct_failure, name *C.char, o *C.tributary_open_options, handle *C.uintptr_t) C.int {
	return report(to, func() error {
		opts, err := openOptions(o)
		if err != nil {
			return err
		}
		c, err := driver.Open(background, C.GoString(name), append(opts, driver.WithWorkers(int(o.workers)))...)
		if err != nil {
			return err
		}
		publish(&card{Card: c}, handle)
		return nil
	})
}

// openOptions returns the options that open and join have in common.
func openOptions(o *C.tributary_open_options) ([]driver.Option, error) {
	var opts []driver.Option
	switch {
	case o.timeout_ns < 0:
		return nil, &driver.InputError{What: "timeout", Why: fmt.Sprintf("%d ns is negative", o.timeout_ns)}
	case o.workers < 0 || o.workers > wire.MaxPorts:
		return nil, &driver.InputError{What: "workers", Why: fmt.Sprintf("%d; a job has 1 to %d", o.workers, wire.MaxPorts)}
	case o.timeout_ns > 0:
		opts = append(opts, driver.WithTimeout(time.Duration(o.timeout_ns)))
	}
	if o.fixed_window != 0 {
		opts = append(opts, driver.WithFixedWindow())
	}
	if o.format != C.TRIBUTARY_ANY_FORMAT {
		f := wire.Format(o.format)
		if _, ok := f.Info(); !ok || int32(o.format) != int32(f) {
			return nil, &driver.InputError{What: "format", Why: fmt.Sprintf("%d is not a tributary_format", o.format)}
		}
		opts = append(opts, driver.WithFormat(f))
	}
	return opts, nil
}

//export goCardInfo
func goCardInfo(to *C.struct_failure, handle C.uint64_t, info *C.tributary_info) C.int {
	return with(to, handle, func(c *card) error {
		fillIn(info, c.Info())
		return nil
	})
}

func fillIn(to *C.tributary_info, i driver.Info) {
	to.config_hash = C.uint64_t(i.ConfigHash)
	to.lanes, to.ports = C.int32_t(i.Lanes), C.int32_t(i.Ports)
	to.format, to.result = C.int32_t(i.Format), C.int32_t(i.Result)
	to.format_size, to.result_size = C.int32_t(element.Size(i.Format)), C.int32_t(element.Size(i.Result))
	to.chunk, to.window, to.jobs = C.int32_t(i.Chunk), C.int32_t(i.Window), C.int32_t(i.Jobs)
	for n, b := range []byte(i.Sum.String()) {
		if n < len(to.sum)-1 {
			to.sum[n] = C.char(b)
		}
	}
}

//export goCardClose
func goCardClose(to *C.struct_failure, handle C.uint64_t) C.int {
	return with(to, handle, func(c *card) error {
		forget(handle)
		return c.end()
	})
}

// end closes the card, and waits until its reductions use no array.
func (c *card) end() error {
	err := c.Close()
	c.running.await(nil)
	return err
}
