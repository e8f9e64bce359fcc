package roce_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tributary/driver"
	"tributary/driver/model"
	"tributary/driver/wire"
)

// newOneArmed returns a fabric whose card has one Ethernet port, and room for as many neighbours.
func newOneArmed(t testing.TB, hosts, ports int) *fabric {
	t.Helper()
	return newFabricOf(t, hosts, true, model.Config{Lanes: 4, Ports: ports, Window: 32, Jobs: 2, Format: wire.Int32, Shell: wire.ShellRoCE, Ethernet: 1, Link: 64})
}

// neighbour returns the addresses of a neighbour of the card.
func (f *fabric) neighbour(address local, number int) (ip, mac uint64) {
	f.Helper()
	return f.register(address, wire.NeighbourAddr(wire.RegNeighbourAddress, number)), f.register(address, wire.NeighbourAddr(wire.RegNeighbourMAC, number))
}

// TestOneArmed: the daemon makes the ranks' hosts neighbours of a one-armed card, so that its ACKs reach them.
func TestOneArmed(t *testing.T) {
	for _, ranks := range []int{2, 3} {
		synctest.Test(t, func(t *testing.T) {
			f := newOneArmed(t, ranks, 4)
			address := f.serve()
			cards := f.openAll(address)
			for round := range uint64(2) {
				team := gather(f, cards, driver.JobConfig{})
				team.sum(wire.Int32, 4321, round)
				team.finish()
			}
			for host := range ranks {
				ip, mac := f.neighbour(address, host)
				assert.EqualValues(t, 0x0a000001+host, ip)
				assert.EqualValues(t, 0x02_0000_0001_00+host, mac)
			}
		})
	}
}

// TestOneArmedPlaces: hosts of later jobs take the places of those whose jobs are over, and not of those
// that run. A job that finds no place ends, and the one that runs goes on.
func TestOneArmedPlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newOneArmed(t, 4, 3)
		address := f.serve()
		cards := f.openAll(address)
		first := gather(f, cards[:2], driver.JobConfig{})
		second, err := cards[2].Configure(t.Context(), driver.JobConfig{Workers: 2, Here: []int{0}})
		require.NoError(t, err)
		_, err = cards[3].Join(t.Context(), second.Ticket(), 1)
		require.NoError(t, err)
		assert.ErrorContains(t, second.AwaitMembers(t.Context()), "relays for 3 hosts")
		first.sum(wire.Int32, 1000, 1)
		first.finish()

		third := gather(f, cards[2:], driver.JobConfig{})
		third.sum(wire.Int32, 1000, 2)
		third.finish()
		var ips []uint64
		for number := range 3 {
			ip, _ := f.neighbour(address, number)
			ips = append(ips, ip)
		}
		assert.Equal(t, []uint64{0x0a000004, 0x0a000002, 0x0a000003}, ips)
	})
}
