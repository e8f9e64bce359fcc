package collective

// Arrays of Go types.

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"unsafe"

	"tributary/driver"
	"tributary/driver/element"
	"tributary/driver/wire"
)

// AllReduce is Collective.AllReduce for arrays of Go types: float32 for fp32, int32 for int32, and the
// encodings of other formats in uint16 (bf16, fp16) or uint8 (fp8). dst may be src.
func AllReduce[E driver.Element](ctx context.Context, c Collective, f wire.Format, dst, src []E) error {
	return finish(StartAllReduce(ctx, c, f, dst, src))
}

// ReduceScatter is Collective.ReduceScatter for arrays of Go types, as with AllReduce.
func ReduceScatter[E driver.Element](ctx context.Context, c Collective, f wire.Format, dst, src []E) error {
	return finish(StartReduceScatter(ctx, c, f, dst, src))
}

// AllGather is Collective.AllGather for arrays of Go types, as with AllReduce.
func AllGather[E driver.Element](ctx context.Context, c Collective, f wire.Format, dst, src []E) error {
	return finish(StartAllGather(ctx, c, f, dst, src))
}

// Broadcast is Collective.Broadcast for arrays of Go types, as with AllReduce.
func Broadcast[E driver.Element](ctx context.Context, c Collective, f wire.Format, buf []E, root int) error {
	return finish(StartBroadcast(ctx, c, f, buf, root))
}

// StartAllReduce is Collective.StartAllReduce for arrays of Go types, as with AllReduce.
func StartAllReduce[E driver.Element](ctx context.Context, c Collective, f wire.Format, dst, src []E) (*Pending, error) {
	return typed(f, dst, src, func(dst, src []byte) (*Pending, error) { return c.StartAllReduce(ctx, f, dst, src) })
}

// StartReduceScatter is Collective.StartReduceScatter for arrays of Go types, as with AllReduce.
func StartReduceScatter[E driver.Element](ctx context.Context, c Collective, f wire.Format, dst, src []E) (*Pending, error) {
	return typed(f, dst, src, func(dst, src []byte) (*Pending, error) { return c.StartReduceScatter(ctx, f, dst, src) })
}

// StartAllGather is Collective.StartAllGather for arrays of Go types, as with AllReduce.
func StartAllGather[E driver.Element](ctx context.Context, c Collective, f wire.Format, dst, src []E) (*Pending, error) {
	return typed(f, dst, src, func(dst, src []byte) (*Pending, error) { return c.StartAllGather(ctx, f, dst, src) })
}

// StartBroadcast is Collective.StartBroadcast for arrays of Go types, as with AllReduce.
func StartBroadcast[E driver.Element](ctx context.Context, c Collective, f wire.Format, buf []E, root int) (*Pending, error) {
	return typed(f, buf, buf, func(dst, _ []byte) (*Pending, error) { return c.StartBroadcast(ctx, f, dst, root) })
}

func finish(p *Pending, err error) error { return wait(p, err) }

// littleEndian reports whether arrays lie in memory as they are encoded.
var littleEndian = binary.NativeEndian.Uint16([]byte{1, 0}) == 1

// typed starts a call on the encodings of two arrays.
func typed[E driver.Element](f wire.Format, dst, src []E, start func(dst, src []byte) (*Pending, error)) (*Pending, error) {
	if !carries[E](f) {
		var zero E
		return nil, &InputError{"format", fmt.Sprintf("arrays of %T do not hold %s", zero, f)}
	}
	if littleEndian {
		return start(memory(dst), memory(src))
	}
	out, in := swapped(memory(dst), element.Size(f)), swapped(memory(src), element.Size(f))
	if overlap(memory(dst), memory(src)) {
		return nil, &InputError{"arrays", "on a big-endian machine they must not overlap"}
	}
	p, err := start(out, in)
	if err != nil {
		return nil, err
	}
	done := &Pending{done: make(chan struct{}), what: p.what}
	go func() {
		<-p.done
		copy(memory(dst), swapped(out, element.Size(f)))
		done.err = p.err
		close(done.done)
	}()
	return done, nil
}

// carries reports whether elements of type E have the format f.
func carries[E driver.Element](f wire.Format) bool {
	var zero E
	half := 0.5
	floating := E(half) != 0
	if int(unsafe.Sizeof(zero)) != element.Size(f) {
		return false
	}
	return element.Size(f) < 4 || floating == (f == wire.FP32)
}

// memory returns the bytes of an array.
func memory[E driver.Element](array []E) []byte {
	var zero E
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(array))), len(array)*int(unsafe.Sizeof(zero)))
}

// swapped returns a copy with the bytes of every element reversed.
func swapped(b []byte, size int) []byte {
	b = slices.Clone(b)
	for e := range slices.Chunk(b, size) {
		slices.Reverse(e)
	}
	return b
}

// overlap reports whether two arrays share memory.
func overlap(a, b []byte) bool {
	if len(a) == 0 || len(b) == 0 {
		return false
	}
	a0, b0 := uintptr(unsafe.Pointer(&a[0])), uintptr(unsafe.Pointer(&b[0]))
	return a0 < b0+uintptr(len(b)) && b0 < a0+uintptr(len(a))
}
