package selftest

import (
	"context"
	"errors"
	"sync"

	"tributary/driver"
)

// jobTimes is how often each job sums.
const jobTimes = 3

// checkJobs sets up as many jobs as the card can hold. They sum whole numbers side by side. The
// first one stays; the others end after each sum and are set up again.
func checkJobs(ctx context.Context, s *subject) error {
	jobs := make([]*driver.Job, s.Info.Jobs)
	for n := range jobs {
		var err error
		if jobs[n], err = s.sideBySide(ctx, n); err != nil {
			return err
		}
	}
	errs := make([]error, len(jobs))
	var wg sync.WaitGroup
	for n, job := range jobs {
		wg.Go(func() {
			if n == 0 {
				errs[n] = s.stay(ctx, job)
			} else {
				errs[n] = s.comeAndGo(ctx, job, n)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// stay sums several times in one job.
func (s *subject) stay(ctx context.Context, job *driver.Job) error {
	for time := range jobTimes {
		if err := s.sumWhole(ctx, job, time); err != nil {
			return err
		}
	}
	return job.Close(ctx)
}

// comeAndGo sums once in the n-th job, and once in each of several jobs after it.
func (s *subject) comeAndGo(ctx context.Context, job *driver.Job, n int) error {
	for time := range jobTimes {
		if time > 0 {
			var err error
			if job, err = s.sideBySide(ctx, n); err != nil {
				return err
			}
		}
		if err := s.sumWhole(ctx, job, n*jobTimes+time); err != nil {
			return err
		}
		if err := job.Close(ctx); err != nil {
			return err
		}
	}
	return nil
}

// sideBySide sets up the n-th of the jobs. Every second job has only one port.
func (s *subject) sideBySide(ctx context.Context, n int) (*driver.Job, error) {
	ports := s.allPorts()
	if n%2 == 1 {
		ports = ports[n%len(ports):][:1]
	}
	return s.Configure(ctx, driver.JobConfig{Ports: ports, Chunk: s.smallChunk(), Window: s.Window / s.Info.Jobs, FirstVID: uint32(n)})
}

// sumWhole sums whole numbers in a job, in more chunks than it has slots. more is added to the
// number of elements.
func (s *subject) sumWhole(ctx context.Context, job *driver.Job, more int) error {
	cfg := job.Config()
	n := (2*2*cfg.Window+1)*cfg.Chunk + more
	inputs := s.wholeInputs(cfg.Workers, n)
	sum := make([]byte, n*s.outBytes())
	if err := job.ReduceBytes(ctx, sum, inputs); err != nil {
		return err
	}
	if err := s.compare(cfg.Ports, sum, func(i int) uint32 { return s.wholeSum(cfg.Workers, i) }); err != nil {
		return wrong("job %d: %w", job.Number(), err)
	}
	return nil
}
