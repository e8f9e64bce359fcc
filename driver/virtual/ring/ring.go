// Package ring has the workers of a job under RoCEv2 around a device: a card of shell roce, or a switch. All
// of it runs on one virtual clock, with faults on every cable.
//
//	r, err := ring.New(card, ring.Config{Job: job, Seed: 1, Faults: cable.Faults{Loss: 0.02}})
//	offers := r.Offers() // register the connections in the card, and commit its job
//	err = r.Connect()
//	for rank, w := range r.Workers {
//		err = w.Start(arrays[rank])
//	}
//	done := r.Run(time.Minute)
//	sum, _, err := r.Workers[0].Outcome()
//
// Without a card, each rank receives the array of the previous one.
package ring

import (
	"net/netip"
	"time"

	"tributary/driver/virtual/cable"
	"tributary/driver/virtual/ethernet"
	"tributary/driver/virtual/rc"
)

// Config describes a ring.
type Config struct {
	Job    rc.Job
	Seed   uint64       // of the faults
	Faults cable.Faults // of each worker's cable

	// FirstPSN returns the first PSN of a rank; nil means FirstPSN of this package.
	FirstPSN func(rank int) uint32

	// OneArmed puts all workers behind port 0 of the device, which has the MAC address CardMAC. Each
	// worker's neighbour entries give it to the others. Otherwise rank i is at port i.
	OneArmed bool
	CardMAC  [6]byte
}

// Ring is the workers of a job, joined to a device.
type Ring struct {
	Room    *cable.Room
	Workers []*rc.Worker
	Barrier *rc.Barrier

	// Cables are those of the ranks. They may change between two calls of Run. cable.Port.Device of rank i
	// is Device(i).
	Cables []*cable.Faults

	config Config
}

// Address returns the address of a rank: 02:52:4f:43:00:01 and 10.84.0.1 for rank 0.
func Address(rank int) rc.Address {
	return rc.Address{MAC: [6]byte{2, 'R', 'O', 'C', 0, byte(rank + 1)}, IP: netip.AddrFrom4([4]byte{10, 84, 0, byte(rank + 1)})}
}

// FirstPSN returns the first PSN of a rank by default: it wraps after at most 30 packets.
func FirstPSN(rank int) uint32 { return uint32(0xffffe2 + 7*rank%30) }

// New puts the workers of a job around a device.
func New(device ethernet.Device, c Config) (*Ring, error) {
	if c.FirstPSN == nil {
		c.FirstPSN = FirstPSN
	}
	r := &Ring{Room: cable.NewRoom(c.Seed), Barrier: rc.NewBarrier(c.Job.Ranks), config: c}
	for rank := range c.Job.Ranks {
		w, err := rc.NewWorker(rc.New(Address(rank)), rank, c.Job, r.Barrier, uint32(0x100+0x10*rank), c.FirstPSN(rank))
		if err != nil {
			return nil, err
		}
		r.Workers = append(r.Workers, w)
		r.Room.Place(w)
	}
	middle := r.Room.Place(device)
	if c.OneArmed {
		middle = r.arm(middle)
	}
	for rank := range r.Workers {
		r.Cables = append(r.Cables, r.Room.Join(cable.Port{Device: Device(rank)}, cable.Port{Device: middle, Port: rank}, c.Faults))
	}
	return r, nil
}

// arm joins a switch to port 0 of the device, and returns its number.
func (r *Ring) arm(device int) int {
	stations := map[[6]byte]int{r.config.CardMAC: len(r.Workers)}
	for rank := range r.Workers {
		stations[Address(rank).MAC] = rank
	}
	at := r.Room.Place(cable.NewSwitch(stations))
	r.Room.Join(cable.Port{Device: at, Port: len(r.Workers)}, cable.Port{Device: device}, cable.Faults{})
	return at
}

// Device returns the number of a rank's worker in the room.
func Device(rank int) int { return rank }

// Next returns the rank that receives from a rank.
func (r *Ring) Next(rank int) int { return (rank + 1) % len(r.Workers) }

// Offers returns what each rank's worker tells the owner. The connection from a rank is to the address and
// TakeQPN of the next rank, and has its own FirstPSN.
func (r *Ring) Offers() (offers []rc.Offer) {
	for _, w := range r.Workers {
		offers = append(offers, w.Offer())
	}
	return offers
}

// Connect connects all queue pairs.
func (r *Ring) Connect() error {
	offers := r.Offers()
	if r.config.OneArmed {
		for i := range offers {
			offers[i].Address.MAC = r.config.CardMAC
		}
	}
	for rank, w := range r.Workers {
		previous := (rank + len(offers) - 1) % len(offers)
		if err := w.Connect(offers[previous], offers[r.Next(rank)]); err != nil {
			return err
		}
	}
	return nil
}

// Run lets time pass until all ranks have an outcome, or for at most a time. It reports whether they have.
func (r *Ring) Run(most time.Duration) bool { return r.Room.Run(most, r.Barrier.Done) }
