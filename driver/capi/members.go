package main

// #include "shim.h"
import "C"

import (
	"fmt"

	"tributary/driver"
	"tributary/driver/wire"
)

// member is a worker's view of a job.
type member struct {
	*driver.Member
	card   *card
	joined bool // has the card for itself, by Join
}

//export goJoin
func goJoin(to *C.struct_failure, ticket *C.char, rank C.int32_t, o *C.tributary_open_options, made *C.uintptr_t) C.int {
	return report(to, func() error {
		opts, err := openOptions(o)
		if err != nil {
			return err
		}
		if rank < C.TRIBUTARY_ANY_RANK || rank >= wire.MaxPorts {
			return &driver.InputError{What: "rank", Why: fmt.Sprintf("%d; ranks are 0 to %d, or TRIBUTARY_ANY_RANK", rank, wire.MaxPorts-1)}
		}
		opts = append(opts, driver.WithJob(driver.JobConfig{Workers: int(o.workers)}))
		m, err := driver.Join(background, C.GoString(ticket), int(rank), opts...)
		if err != nil {
			return err
		}
		publish(&member{Member: m, card: &card{Card: m.Job().Card()}, joined: true}, made)
		return nil
	})
}

//export goMemberRank
func goMemberRank(to *C.struct_failure, handle C.uint64_t, rank, workers *C.int32_t) C.int {
	return with(to, handle, func(m *member) error {
		if rank != nil {
			*rank = C.int32_t(m.Rank())
		}
		if workers != nil {
			*workers = C.int32_t(m.Job().Config().Workers)
		}
		return nil
	})
}

//export goMemberInfo
func goMemberInfo(to *C.struct_failure, handle C.uint64_t, info *C.tributary_info) C.int {
	return with(to, handle, func(m *member) error {
		fillIn(info, m.card.Info())
		return nil
	})
}

//export goMemberClose
func goMemberClose(to *C.struct_failure, handle C.uint64_t) C.int {
	return with(to, handle, func(m *member) error {
		if !m.joined {
			forget(handle)
			return nil
		}
		err := m.Job().Close(background)
		if isBusy(err) {
			return err
		}
		forget(handle)
		if ended := m.card.end(); err == nil {
			err = ended
		}
		return err
	})
}

//export goMemberAbort
func goMemberAbort(to *C.struct_failure, handle C.uint64_t) C.int {
	return with(to, handle, func(m *member) error {
		forget(handle)
		if m.joined {
			_ = m.card.end() // of a connection that nobody needs any more
		}
		return nil
	})
}
