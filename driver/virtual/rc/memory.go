package rc

// region is memory that a peer may write.
type region struct {
	at     uint64
	memory []byte
}

// Register allows RDMA WRITE to memory, at remote addresses that begin with at, by whoever has the key
// that it returns. The memory is not copied.
func (h *Host) Register(at uint64, memory []byte) (key uint32) {
	key = firstKey + uint32(len(h.regions))
	h.regions[key] = region{at, memory}
	return key
}

// firstKey is the first key of a host, which is not 0.
const firstKey = 0x1001

// reach returns the memory of n bytes at a remote address. ok is false if the key does not allow it.
func (h *Host) reach(key uint32, at uint64, n uint32) (memory []byte, ok bool) {
	r, ok := h.regions[key] // below r.at, the difference wraps
	if !ok || at-r.at > uint64(len(r.memory)) || uint64(n) > uint64(len(r.memory))-(at-r.at) {
		return nil, false
	}
	from := at - r.at
	return r.memory[from : from+uint64(n)], true
}
