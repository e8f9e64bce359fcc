//go:build roce

package roce

// #cgo CFLAGS: -fvisibility=hidden
// #cgo LDFLAGS: -libverbs
// // libtributary.so exports no functions of this library.
// #include <stdlib.h>
// #include "tributary_roce.h"
import "C"

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"unsafe"

	"tributary/driver/daemon/protocol"
	"tributary/driver/transport/rdma"
)

// verbs is a port of an RDMA device, through the C library.
type verbs struct {
	device, address string // empty: any
	mtu             int    // of the port
}

// openVerbs returns the device that the environment names.
func openVerbs() (rdma.Stack, error) {
	v := &verbs{device: os.Getenv("TRIBUTARY_ROCE_DEVICE"), address: os.Getenv("TRIBUTARY_ROCE_ADDRESS")}
	q, err := v.open(rdma.Job{Ranks: 2, Window: 1}) // for the port's MTU
	if err != nil {
		return nil, err
	}
	v.mtu = int(q.end.Mtu)
	return v, q.Close()
}

func (v *verbs) MTU() int { return v.mtu }

func (v *verbs) Open(_ context.Context, job rdma.Job) (rdma.QueuePairs, error) {
	q, err := v.open(job)
	if err != nil {
		return nil, err
	}
	if err := q.pin(); err != nil {
		return nil, errors.Join(err, q.Close())
	}
	return q, nil
}

// queues are queue pairs of libibverbs. Arrays pass through two pinned buffers, because the device needs
// memory that is registered and stays.
type queues struct {
	roce    *C.tributary_roce
	end     *protocol.Connection
	in, out unsafe.Pointer
	regions struct{ in, out *C.tributary_roce_region }
}

// pinned is the size of a buffer in bytes: whole packets of any MTU.
const pinned = 4 << 20

// open makes queue pairs without buffers. The MTU 0 is that of the port.
func (v *verbs) open(job rdma.Job) (*queues, error) {
	q := &queues{roce: C.tributary_roce_new()}
	if q.roce == nil {
		return nil, errors.New("no memory")
	}
	options := C.tributary_roce_options{
		mtu: C.uint32_t(job.MTU), packets: C.uint32_t(job.Packets()), window: C.uint32_t(job.Window),
	}
	options.size = C.size_t(unsafe.Sizeof(options))
	if v.device != "" {
		options.device = C.CString(v.device)
		defer C.free(unsafe.Pointer(options.device))
	}
	if v.address != "" {
		options.address = C.CString(v.address)
		defer C.free(unsafe.Pointer(options.address))
	}
	err := q.check(C.tributary_roce_open(q.roce, &options, C.uint32_t(job.Ranks)))
	var own C.tributary_roce_end
	if err == nil {
		err = q.check(C.tributary_roce_local(q.roce, nil, &own))
	}
	if err != nil {
		return nil, errors.Join(err, q.Close())
	}
	q.end = connectionOf(&own)
	return q, nil
}

// pin gives the queue pairs their buffers.
func (q *queues) pin() error {
	q.in, q.out = C.malloc(pinned), C.malloc(pinned)
	if q.in == nil || q.out == nil {
		return errors.New("no memory")
	}
	if err := q.check(C.tributary_roce_register(q.roce, q.in, pinned, &q.regions.in)); err != nil {
		return err
	}
	return q.check(C.tributary_roce_register(q.roce, q.out, pinned, &q.regions.out))
}

func (q *queues) Connection() *protocol.Connection { return q.end }

func (q *queues) Connect(previous, next *protocol.Connection) error {
	before, after := endOf(previous), endOf(next)
	return q.check(C.tributary_roce_connect(q.roce, &before, &after))
}

func (q *queues) Reduce(ctx context.Context, in, out []byte) error {
	canceled := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(canceled)
		C.tributary_roce_cancel(q.roce)
	})
	defer func() {
		if !stop() {
			<-canceled // Close may follow
		}
	}()
	for len(in) > 0 {
		n := copy(unsafe.Slice((*byte)(q.in), pinned), in)
		if err := q.check(C.tributary_roce_reduce(q.roce, q.regions.in, 0, q.regions.out, 0, C.size_t(n), 0)); err != nil {
			return err
		}
		copy(out, unsafe.Slice((*byte)(q.out), n))
		in, out = in[n:], out[n:]
	}
	return nil
}

func (q *queues) Close() error {
	C.tributary_roce_close(q.roce)
	C.free(q.in)
	C.free(q.out)
	q.roce, q.in, q.out = nil, nil, nil
	return nil
}

// check returns the error of a call of the library.
func (q *queues) check(e C.tributary_roce_error) error {
	if e == C.TRIBUTARY_ROCE_OK {
		return nil
	}
	return fmt.Errorf("%s (%s)", C.GoString(C.tributary_roce_error_text(q.roce)), C.GoString(C.tributary_roce_error_name(e)))
}

// connectionOf returns an end as the protocol has it.
func connectionOf(end *C.tributary_roce_end) *protocol.Connection {
	k := &protocol.Connection{
		SendQpn: uint32(end.send_qpn), ReceiveQpn: uint32(end.receive_qpn), FirstPsn: uint32(end.psn),
		Mtu: uint32(end.mtu), SumsAt: uint64(end.address), SumsKey: uint32(end.rkey),
	}
	for _, b := range end.ip {
		k.Ip = k.Ip<<8 | uint32(b)
	}
	for _, b := range end.mac {
		k.Mac = k.Mac<<8 | uint64(b)
	}
	return k
}

// endOf is the inverse of connectionOf.
func endOf(k *protocol.Connection) (end C.tributary_roce_end) {
	var ip [4]byte
	binary.BigEndian.PutUint32(ip[:], k.Ip)
	var mac [8]byte
	binary.BigEndian.PutUint64(mac[:], k.Mac)
	for i, b := range ip {
		end.ip[i] = C.uint8_t(b)
	}
	for i, b := range mac[2:] {
		end.mac[i] = C.uint8_t(b)
	}
	end.send_qpn, end.receive_qpn, end.psn = C.uint32_t(k.SendQpn), C.uint32_t(k.ReceiveQpn), C.uint32_t(k.FirstPsn)
	end.mtu, end.rkey, end.address = C.uint32_t(k.Mtu), C.uint32_t(k.SumsKey), C.uint64_t(k.SumsAt)
	return end
}
