package selftest

import (
	"cmp"
	"context"
	"errors"

	"tributary/driver"
	"tributary/driver/element"
)

// subject is a card under test.
type subject struct {
	*driver.Card
	driver.Info
	arithmetic
}

func newSubject(card *driver.Card) *subject {
	return &subject{card, card.Info(), newArithmetic(card.Info())}
}

// reduce sums inputs in a job of its own on the given ports. chunk and window
// are the card's when 0.
func (s *subject) reduce(ctx context.Context, ports []int, chunk, window int, inputs [][]byte) ([]byte, error) {
	job, err := s.Configure(ctx, driver.JobConfig{Ports: ports, Chunk: chunk, Window: cmp.Or(window, s.Window)})
	if err != nil {
		return nil, err
	}
	sum := make([]byte, len(inputs[0])/s.inBytes()*s.outBytes())
	if err := job.ReduceBytes(ctx, sum, inputs); err != nil {
		return nil, err
	}
	return sum, job.Close(ctx)
}

// compare checks every element's bits and reports the first wrong one.
func (s *subject) compare(ports []int, have []byte, want func(i int) uint32) error {
	for i := range len(have) / s.outBytes() {
		if got := element.At(s.Result, have, i); got != want(i) {
			digits := 2 * s.outBytes()
			return wrong("ports %v, element %d (lane %d): 0x%0*x, must be 0x%0*x", ports, i, i%s.Lanes, digits, got, digits, want(i))
		}
	}
	return nil
}

// smallChunk is two beats, or one if the card takes no more.
func (s *subject) smallChunk() int { return min(2*s.Lanes, s.Chunk) }

// checkLanes sends a pattern through each port alone, often enough to use every
// slot twice.
func checkLanes(ctx context.Context, s *subject) error {
	chunk := s.smallChunk()
	n := (4*s.Window + 1) * chunk
	for port := range s.Ports {
		in := s.pack(n, func(i int) uint32 { return s.pattern(i, port) })
		ports := []int{port}
		sum, err := s.reduce(ctx, ports, chunk, 0, [][]byte{in})
		if err != nil {
			return err
		}
		if err := s.compare(ports, sum, func(i int) uint32 { return s.widen(s.pattern(i, port)) }); err != nil {
			return err
		}
	}
	return nil
}

// allPorts returns 0, 1, ... up to the card's last port.
func (s *subject) allPorts() []int {
	ports := make([]int, s.Ports)
	for p := range ports {
		ports[p] = p
	}
	return ports
}

// checkWhole sums n whole numbers from all ports.
func (s *subject) checkWhole(ctx context.Context, n, chunk, window int) error {
	ports := s.allPorts()
	sum, err := s.reduce(ctx, ports, chunk, window, s.wholeInputs(len(ports), n))
	if err != nil {
		return err
	}
	return s.compare(ports, sum, func(i int) uint32 { return s.wholeSum(len(ports), i) })
}

// checkPorts sums whole numbers from all ports, in the card's largest chunks.
func checkPorts(ctx context.Context, s *subject) error { return s.checkWhole(ctx, 2*s.Chunk, 0, 0) }

// checkSizes sums arrays with lengths around the boundaries.
func checkSizes(ctx context.Context, s *subject) error {
	chunk := s.smallChunk()
	for _, n := range []int{1, s.Lanes, s.Lanes + 1, chunk - 1, chunk, chunk + 1, s.Window * chunk, 2*s.Window*chunk + 1} {
		if n < 1 {
			continue
		}
		for _, window := range []int{1, s.Window} {
			if err := s.checkWhole(ctx, n, chunk, window); err != nil {
				return wrong("%d elements, window %d: %w", n, window, err)
			}
		}
	}
	return nil
}

// checkSingle sends the singles through every lane of every port alone.
func checkSingle(ctx context.Context, s *subject) error {
	rows := singles[s.Format]
	in := s.pack(len(rows)*s.Lanes, func(i int) uint32 { return rows[i/s.Lanes][0] })
	for _, port := range s.allPorts() {
		ports := []int{port}
		sum, err := s.reduce(ctx, ports, s.smallChunk(), 0, [][]byte{in})
		if err != nil {
			return err
		}
		if err := s.compare(ports, sum, func(i int) uint32 { return s.widen(rows[i/s.Lanes][1]) }); err != nil {
			return err
		}
	}
	return nil
}

// checkEdges sums the edges in both orders in every lane, at every two neighbouring ports.
func checkEdges(ctx context.Context, s *subject) error {
	rows := s.expected.edges(&s.arithmetic)
	n := 2 * len(rows) * s.Lanes
	row := func(i int) [3]uint32 { return rows[i/s.Lanes%len(rows)] }
	swapped := func(i int) int { return i / (n / 2) }
	inputs := [][]byte{
		s.pack(n, func(i int) uint32 { return row(i)[swapped(i)] }),
		s.pack(n, func(i int) uint32 { return row(i)[1-swapped(i)] }),
	}
	for port := 1; port < s.Ports; port++ {
		ports := []int{port - 1, port}
		sum, err := s.reduce(ctx, ports, s.smallChunk(), 0, inputs)
		if err != nil {
			return err
		}
		if err := s.compare(ports, sum, func(i int) uint32 { return row(i)[2] }); err != nil {
			return err
		}
	}
	return nil
}

// orders are the orders of three inputs at three ports; fourOrders are some of four inputs.
var (
	orders     = [][]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}}
	fourOrders = [][]int{{0, 1, 2, 3}, {1, 2, 3, 0}, {2, 0, 3, 1}, {3, 2, 1, 0}}
)

// independent reports whether the order of the inputs never matters.
func (s *subject) independent() bool { return !s.expected.ordered || s.integers() }

// checkOrder sums the triples at every three neighbouring ports. It uses the order with a known
// answer of the tree, and all orders if the sum must not depend on the order.
func checkOrder(ctx context.Context, s *subject) error {
	rows := s.expected.triples(&s.arithmetic)
	for port := 0; port+2 < s.Ports; port++ {
		err := s.checkNeighbours(ctx, port, orders, len(rows),
			func(row, k int) uint32 { return rows[row].inputs[k] },
			func(row int) uint32 { return rows[row].answer(port) })
		if err != nil {
			return err
		}
	}
	return nil
}

// checkFar sums the quadruples at every four neighbouring ports with an even first port.
func checkFar(ctx context.Context, s *subject) error {
	rows := s.expected.quadruples(&s.arithmetic)
	for port := 0; port+3 < s.Ports; port += 2 {
		err := s.checkNeighbours(ctx, port, fourOrders, len(rows),
			func(row, k int) uint32 { return rows[row].inputs[k] },
			func(row int) uint32 { return rows[row].sum })
		if err != nil {
			return err
		}
	}
	return nil
}

// checkNeighbours sums rows, each in every lane, at neighbouring ports from port on. It tries all
// orders of the inputs, or only the first one if the order matters. input returns the k-th
// input of a row.
func (s *subject) checkNeighbours(ctx context.Context, port int, orders [][]int, rows int, input func(row, k int) uint32, want func(row int) uint32) error {
	if !s.independent() {
		orders = orders[:1]
	}
	for _, order := range orders {
		inputs, ports := make([][]byte, len(order)), make([]int, len(order))
		for k := range order {
			inputs[k] = s.pack(rows*s.Lanes, func(i int) uint32 { return input(i/s.Lanes, order[k]) })
			ports[k] = port + k
		}
		sum, err := s.reduce(ctx, ports, 0, 0, inputs)
		if err != nil {
			return err
		}
		if err := s.compare(ports, sum, func(i int) uint32 { return want(i / s.Lanes) }); err != nil {
			return wrong("the inputs in the order %v: %w", order, err)
		}
	}
	return nil
}

// checkCounted sums three chunks: zeros, one with twice the largest number in an element, and one
// with a NaN from the last port. It checks the card's counts, the position of the first
// exception, and that the next job clears them.
func checkCounted(ctx context.Context, s *subject) error {
	const first = 7 // the first VID
	chunk, last := s.smallChunk(), s.Ports-1
	job, err := s.Configure(ctx, driver.JobConfig{Chunk: chunk, FirstVID: first})
	if err != nil {
		return err
	}
	inputs := make([][]byte, s.Ports)
	for p := range inputs {
		inputs[p] = s.pack(3*chunk, func(i int) uint32 {
			switch {
			case i == chunk && p < 2:
				return largest(s.format)
			case i == 3*chunk-1 && p == last:
				return s.format.NaN // 0 for integers
			}
			return 0
		})
	}
	sum := make([]byte, 3*chunk*s.outBytes())
	if err := job.ReduceBytes(ctx, sum, inputs); err != nil {
		return err
	}
	if err := job.Close(ctx); err != nil {
		return err
	}
	var want driver.Exceptions
	if s.overflows() {
		want.Overflow = driver.Exception{Count: 1, VID: first + 1}
	}
	if !s.integers() {
		want.NonfiniteIn = driver.Exception{Count: 1, VID: first + 2, Rank: last}
		want.NonfiniteOut = driver.Exception{Count: 1 + want.Overflow.Count, VID: first + 2 - want.Overflow.Count}
	}
	if err := counted(ctx, job, want); err != nil {
		return err
	}
	if job, err = s.Configure(ctx, driver.JobConfig{}); err != nil {
		return err
	}
	return errors.Join(counted(ctx, job, driver.Exceptions{}), job.Abort(ctx))
}

// counted checks the card's counts for a job.
func counted(ctx context.Context, job *driver.Job, want driver.Exceptions) error {
	have, err := job.Exceptions(ctx)
	return check(err, have == want, "the job's exceptions are %+v, must be %+v", have, want)
}
