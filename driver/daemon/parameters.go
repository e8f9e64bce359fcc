package daemon

import (
	"fmt"
	"slices"
	"time"

	"tributary/driver"
	"tributary/driver/daemon/protocol"
)

// differing refuses a member that expects other parameters than the job has. It names the first.
func differing(want *protocol.Parameters, cfg driver.JobConfig) *refusal {
	if want == nil {
		return nil
	}
	has := cfg.Parameters()
	for _, f := range []struct {
		name      string
		given     bool
		want, has any
	}{
		{"workers", want.Workers != nil, want.GetWorkers(), has.GetWorkers()},
		{"chunk", want.Chunk != nil, want.GetChunk(), has.GetChunk()},
		{"window", want.Window != nil, want.GetWindow(), has.GetWindow()},
		{"first VID", want.FirstVid != nil, want.GetFirstVid(), has.GetFirstVid()},
		{"deadline", want.DeadlineNs != nil, time.Duration(want.GetDeadlineNs()), time.Duration(has.GetDeadlineNs())},
		{"deadline in cycles", want.DeadlineCycles != nil, want.GetDeadlineCycles(), has.GetDeadlineCycles()},
		{"partial sums", want.Partial != nil, want.GetPartial(), has.GetPartial()},
		{"carry on", want.CarryOnNs != nil, time.Duration(want.GetCarryOnNs()), time.Duration(has.GetCarryOnNs())},
	} {
		if f.given && f.want != f.has {
			return &refusal{reason: protocol.Reason_PARAMETERS, field: f.name, text: fmt.Sprintf("%s: this member expects %v, the job has %v", f.name, f.want, f.has)}
		}
	}
	if len(want.Ports) > 0 && !slices.Equal(want.Ports, has.Ports) {
		return &refusal{reason: protocol.Reason_PARAMETERS, field: "ports", text: fmt.Sprintf("ports: this member expects %v, the job has %v", want.Ports, has.Ports)}
	}
	return nil
}
