package daemon

// result is the sum of a chunk.
type result struct {
	vid  uint32
	mask uint64 // the ranks in it
	sum  []byte
}

// keptResults are the last results of a job, by slot: VID v in slot v mod their number.
type keptResults []result

// noteSummed moves on to the first VID of whose result nothing has been seen, and continues with a
// member that waits for that.
func (j *job) noteSummed() {
	for {
		if _, ok := j.kept.of(j.summed); !ok {
			break
		}
		j.summed++
	}
	j.renewIfDrained()
}

// put stores a copy of a result in its slot, unless there is a later one, or one of the same VID.
func (k keptResults) put(r result) {
	in := &k[int(r.vid)%len(k)]
	if in.mask == 0 || int32(r.vid-in.vid) > 0 {
		*in = result{r.vid, r.mask, append(in.sum[:0], r.sum...)}
	}
}

// of returns the result of a VID, if it is kept. Its sum is valid until the next put.
func (k keptResults) of(vid uint32) (result, bool) {
	r := k[int(vid)%len(k)]
	return r, r.mask != 0 && r.vid == vid
}
