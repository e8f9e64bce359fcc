package main

// Jobs on a network whose slowest link has a queue that marks: the driver's congestion window beside a
// fixed window.

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"tributary/driver"
	"tributary/driver/frame"
	"tributary/driver/model"
	"tributary/driver/virtual/udp"
	"tributary/driver/wire"
	"tributary/verify/system/faults"
)

// The bottleneck: a link of 10 Mbit/s and 2 ms, and a threshold of 32 packets, which take 28 ms. The DCTCP
// paper's least threshold is a seventh of the packets on the way, about one here; the rest covers pauses of
// a busy machine. The queue holds all of a fixed window.
const (
	narrowRate      = 10e6 / 8
	narrowFrame     = 256*4 + 18 + 66
	narrowThreshold = 32 * narrowFrame
	narrowWindow    = 256
	narrowWorkers   = 2
)

// narrowTime is how long an exchange is measured, for each of its jobs, after narrowStart.
const (
	narrowTime  = 8 * time.Second
	narrowStart = 3 * time.Second
)

// congestionRows measures queue and goodput of one job, and the shares of two.
func congestionRows(ctx context.Context) ([]Row, error) {
	var rows []Row
	for _, d := range []frame.Direction{frame.ToCard, frame.FromCard} {
		way := "to the card"
		if d == frame.FromCard {
			way = "from the card"
		}
		progress("sharing a link %s with a queue that marks", way)
		fixed, err := exchangeNarrow(ctx, d, 1, driver.WithFixedWindow())
		if err != nil {
			return nil, err
		}
		one, err := exchangeNarrow(ctx, d, 1)
		if err != nil {
			return nil, err
		}
		two, err := exchangeNarrow(ctx, d, 2)
		if err != nil {
			return nil, err
		}
		rows = append(rows, queueRow(way, one, fixed), goodputRow(way, one, fixed), sharesRow(way, two))
	}
	return rows, nil
}

func queueRow(way string, window, fixed narrow) Row {
	return Row{Name: fmt.Sprintf("mean queue of a link %s, DCTCP", way), Value: window.queue / narrowFrame, Unit: "packets"}.
		beside("fixed window", fixed.queue/narrowFrame).
		mustRatioBelow(0.25)
}

func goodputRow(way string, window, fixed narrow) Row {
	return Row{Name: fmt.Sprintf("goodput over a link %s, DCTCP", way), Value: window.chunks[0], Unit: "chunks a second"}.
		beside("fixed window", fixed.chunks[0]).
		mustRatio(0.95)
}

func sharesRow(way string, two narrow) Row {
	less, more := min(two.chunks[0], two.chunks[1]), max(two.chunks[0], two.chunks[1])
	return Row{Name: fmt.Sprintf("goodput of two jobs on a link %s: the slower", way), Value: less, Unit: "chunks a second"}.
		beside("the faster", more).
		must("each within 10 % of half", less >= 0.9*(less+more)/2)
}

// narrow is what one exchange did.
type narrow struct {
	queue  float64   // the time-weighted mean, in bytes of frames
	chunks []float64 // of each job, in a second
}

// exchangeNarrow runs jobs with a card of its own each, all behind one bottleneck in a direction.
func exchangeNarrow(ctx context.Context, d frame.Direction, jobs int, opts ...driver.Option) (narrow, error) {
	queue := faults.NewBottleneck(faults.BottleneckConfig{
		Rate: narrowRate, Limit: 8 * narrowWindow * narrowFrame, Threshold: narrowThreshold, Delay: 2 * time.Millisecond,
	})
	defer queue.Close()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var all []*driver.Job
	ended := make(chan error, jobs)
	for range jobs {
		job, end, err := behindQueue(ctx, queue, d, opts...)
		if err != nil {
			return narrow{}, err
		}
		defer end()
		all = append(all, job)
	}
	queue.Restart()
	for _, job := range all {
		go func() {
			arrays := makeInputs(narrowWorkers, 64*1024*256)
			ended <- reduceEach(ctx, job, arrays)
		}()
	}
	if err := pause(ctx, narrowStart, ended); err != nil {
		return narrow{}, err
	}
	queue.Restart()
	before, began := results(all), time.Now()
	if err := pause(ctx, time.Duration(jobs)*narrowTime, ended); err != nil {
		return narrow{}, err
	}
	after, elapsed, s := results(all), time.Since(began), queue.Stats()
	n := narrow{queue: s.MeanQueue()}
	for i := range all {
		n.chunks = append(n.chunks, float64(after[i]-before[i])/narrowWorkers/elapsed.Seconds())
	}
	progress("  %d passed, %d marked, %d lost; %+v", s.Passed, s.Marked, s.Lost, all[0].Congestion())
	stop()
	for range all {
		<-ended
	}
	return n, nil
}

// pause waits for a time, or until a job ends.
func pause(ctx context.Context, d time.Duration, ended <-chan error) error {
	select {
	case <-time.After(d):
		return nil
	case err := <-ended:
		return errors.Join(err, errors.New("a job ended early"))
	case <-ctx.Done():
		return ctx.Err()
	}
}

// results returns how many results each job has.
func results(jobs []*driver.Job) []uint64 {
	n := make([]uint64, len(jobs))
	for i, job := range jobs {
		n[i] = job.Stats().Results
	}
	return n
}

// behindQueue starts a model card, a way to it through the queue, and a job.
func behindQueue(ctx context.Context, queue *faults.Bottleneck, d frame.Direction, opts ...driver.Option) (*driver.Job, func(), error) {
	socket, err := udp.Listen("127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	card, err := model.NewEndpoint(model.Config{Lanes: 16, Ports: narrowWorkers, Chunk: 256, Window: narrowWindow, Shell: wire.ShellUDP, Link: 64}, socket.Address())
	if err != nil {
		return nil, nil, errors.Join(err, socket.Close())
	}
	serving, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- socket.Serve(serving, card) }()
	end := func() {
		stop()
		<-served
	}
	proxy, err := faults.NewProxy(strings.TrimPrefix(socket.Name(), "udp:"), faults.Rates{}, new(faults.Counts))
	if err != nil {
		end()
		return nil, nil, err
	}
	host, err := driver.Open(ctx, proxy.Name(), opts...)
	if err != nil {
		proxy.Close()
		end()
		return nil, nil, err
	}
	all := func() {
		host.Close()
		proxy.Close()
		end()
	}
	job, err := host.Configure(ctx, driver.JobConfig{Window: narrowWindow})
	if err != nil {
		all()
		return nil, nil, err
	}
	proxy.Narrow(d, queue)
	return job, all, nil
}
