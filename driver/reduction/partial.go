package reduction

// Options.Partial: which elements lack which workers' arrays.

import (
	"fmt"
	"slices"
	"strings"

	"tributary/driver"
)

// notePartials records which sums lack which workers.
func (r *Reduction) notePartials(job *driver.Job) { r.setPartials(job.Partials(), job.Evicted()) }

func (r *Reduction) setPartials(partials []driver.Partial, evicted []int) {
	r.partials = partials
	for _, p := range r.partials {
		r.report.Partial = append(r.report.Partial, PartialIn{From: p.From, To: p.To, Workers: p.Ranks})
	}
	r.report.Evicted = evicted
}

// lack is a number of elements that lack the same workers.
type lack struct {
	who      string
	elements int
	first    int
}

// lacks returns a lack for each set of workers, in the order of the elements.
func (r *Reduction) lacks() []lack {
	var lacks []lack
	for _, p := range r.partials {
		var who []string
		for worker, w := range r.workers {
			if !slices.Contains(p.Ranks, worker) {
				who = append(who, w.name)
			}
		}
		names := strings.Join(who, ", ")
		at := slices.IndexFunc(lacks, func(l lack) bool { return l.who == names })
		if at < 0 {
			at = len(lacks)
			lacks = append(lacks, lack{who: names, first: p.From})
		}
		lacks[at].elements += p.To - p.From
	}
	return lacks
}

// partialLines returns a line for each set of workers that elements lack, and for each evicted
// worker.
func (r *Reduction) partialLines() []string {
	var lines []string
	for _, l := range r.lacks() {
		lines = append(lines, fmt.Sprintf("%d of %d elements of the sum lack %s, which came too late; the first is %s", l.elements, r.elements, l.who, r.workers[0].place(l.first)))
	}
	for _, worker := range r.report.Evicted {
		lines = append(lines, fmt.Sprintf("%s was evicted: it blocked the others for a second deadline", r.workers[worker].name))
	}
	return lines
}
