package daemon

import (
	"net"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"tributary/driver"
)

// TestPlaceNeighbours: a host keeps its place and may change its MAC address.
func TestPlaceNeighbours(t *testing.T) {
	at := func(hosts ...byte) (all []driver.Neighbour) {
		for _, h := range hosts {
			all = append(all, driver.Neighbour{Address: netip.AddrFrom4([4]byte{10, 0, 0, h}), MAC: net.HardwareAddr{2, 0, 0, 0, 0, h}})
		}
		return all
	}
	other := at(2)
	other[0].MAC = net.HardwareAddr{2, 0, 0, 0, 0, 99}
	for what, c := range map[string]struct{ before, job, running, after []driver.Neighbour }{
		"first job":           {nil, at(1, 2), nil, at(1, 2)},
		"two ranks at a host": {nil, at(1, 1, 2), nil, at(1, 2)},
		"again":               {at(1, 2, 3), at(3, 1), nil, at(1, 2, 3)},
		"over before":         {at(1, 2, 3), at(4), at(1), at(1, 4, 3)},
		"other MAC address":   {at(1, 2), other, at(2), append(at(1), other...)},
		"lost by the daemon":  {nil, at(1), at(2, 3), at(2, 3, 1)},
		"full":                {at(1, 2, 3), at(4), at(1, 2, 3), nil},
	} {
		after, ok := placeNeighbours(c.before, c.job, c.running, 3)
		assert.Equal(t, c.after != nil, ok, what)
		assert.Equal(t, c.after, after, what)
	}
}

// TestAwaitPartingEnds: clients that do not report their queue pairs hold up the next job for a while alone.
func TestAwaitPartingEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &card{server: &Server{running: t.Context()}, parting: map[uint64]*job{}}
		j := &job{card: c, nonce: 1, rdma: &rdma{}, seats: []*seat{{session: &session{}}}}
		j.part()
		began := time.Now()
		assert.True(t, c.awaitParting())
		assert.Equal(t, dropTimeout, time.Since(began))
		assert.False(t, c.awaitParting())
	})
}
