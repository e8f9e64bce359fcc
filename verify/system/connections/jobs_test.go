package connections_test

import (
	"bytes"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tributary/driver/virtual/cable"
	"tributary/driver/virtual/rc"
	"tributary/driver/virtual/ring"
	"tributary/verify/system/connections"
)

// twoJobs runs two jobs at once on a card in path, one of SEND and one of RDMA WRITE, with losses. At each
// Ethernet port, a switch has a host of each job. Their QPNs are the same.
func twoJobs(t *testing.T, s *site) {
	jobs := []rc.Job{small(3, false), small(3, true)}
	room := cable.NewRoom(1)
	card := room.Place(s.card)
	address := func(number, rank int) rc.Address {
		return rc.Address{MAC: [6]byte{2, 'R', 'O', 'C', byte(1 + number), byte(rank)}, IP: netip.AddrFrom4([4]byte{10, 85, byte(number), byte(1 + rank)})}
	}
	var switches []int
	for port := range s.ethernet {
		stations := map[[6]byte]int{}
		for number, job := range jobs {
			for rank := range job.Ranks {
				stations[address(number, rank).MAC] = 2
				if rank == port {
					stations[address(number, rank).MAC] = number
				}
			}
		}
		at := room.Place(cable.NewSwitch(stations))
		room.Join(cable.Port{Device: at, Port: 2}, cable.Port{Device: card, Port: port}, cable.Faults{})
		switches = append(switches, at)
	}
	var workers [][]*rc.Worker
	var barriers []*rc.Barrier
	for number := range jobs {
		job := &jobs[number]
		job.Packets, job.Window = 2, 4
		barrier := rc.NewBarrier(job.Ranks)
		var all []*rc.Worker
		var members []member
		for rank := range job.Ranks {
			w, err := rc.NewWorker(rc.New(address(number, rank)), rank, *job, barrier, uint32(0x40+4*rank), ring.FirstPSN(rank+number))
			require.NoError(t, err)
			all = append(all, w)
			room.Join(cable.Port{Device: room.Place(w)}, cable.Port{Device: switches[rank], Port: number}, cable.Faults{Loss: 0.01})
		}
		for rank, w := range all {
			next := (rank + 1) % job.Ranks
			members = append(members, member{w.Offer().Address, rank, all[next].Offer().TakeQPN, w.Offer().FirstPSN, next})
		}
		s.stage(members, job.MTU, job.Window)
		s.commit(number)
		workers, barriers = append(workers, all), append(barriers, barrier)
	}
	s.drain()
	s.card.(*connections.Simulated).Restart()
	for number, all := range workers {
		ranks := jobs[number].Ranks
		for rank, w := range all {
			require.NoError(t, w.Connect(all[(rank+ranks-1)%ranks].Offer(), all[(rank+1)%ranks].Offer()))
		}
		for rank, w := range all {
			require.NoError(t, w.Start(array(number, rank, jobs[number].Bytes)))
		}
	}
	require.True(t, room.Run(10*time.Minute, func() bool { return barriers[0].Done() && barriers[1].Done() }))
	for number, all := range workers {
		want := sum(number, jobs[number])
		for rank, w := range all {
			got, _, err := w.Outcome()
			require.NoError(t, err)
			assert.True(t, bytes.Equal(want, got), "job %d, rank %d", number, rank)
		}
	}
	assert.Positive(t, room.Counters().Lost)
	assert.EqualValues(t, 2*3*smallPackets, s.grown()["stored"])
}
