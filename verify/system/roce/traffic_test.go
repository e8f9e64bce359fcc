package roce

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tributary/verify/system/roce/rig"
)

// exchange is a program that is server at one host and client at another.
type exchange struct {
	command        string // IP is the server's address
	server, client string // further words
	listening      string // a test in sh that the server listens
}

// Tests that a server listens: at TCP port 18515, or for the connection manager of RDMA.
const (
	overTCP = "grep -q :4853.*:0000.0A /proc/net/tcp"
	overCM  = "rdma resource show cm_id | grep -q LISTEN"
)

// exchanges are what Debian has to try RDMA. Those of ibv_rc_pingpong (-c) and rping (-V) compare the data.
// Messages are short: the timers of these programs are 67 ms (an exponent of 14). In simulated gateware 25 packets
// of 4 KiB take half a second, so that they are repeated eight times.
var exchanges = []exchange{
	{"ibv_rc_pingpong -d rxe0 -g 1 -c -n 20 -m 1024", "", "IP", overTCP},
	{"ibv_rc_pingpong -d rxe0 -g 1 -c -n 10 -m 4096 -s 12000", "", "IP", overTCP},
	{"ib_send_bw -d rxe0 -x 1 -n 20 -s 16384 -u 20 -m 2048", "", "IP", overTCP},
	{"ib_write_bw -d rxe0 -x 1 -n 20 -s 16384 -u 20", "", "IP", overTCP},
	{"ib_send_bw -d rxe0 -x 1 -n 20 -s 16384 -u 20 -R", "", "IP", overCM},
	{"ib_write_bw -d rxe0 -x 1 -n 20 -s 16384 -u 20 -R", "", "IP", overCM},
	{"rping -a IP -V -C 10", "-s", "-c", overCM},
	{"rping -a IP -V -C 10 -q -S 8000", "-s", "-c", overCM},
}

// TestTraffic: traffic that no job concerns passes a card unharmed, between all hosts.
func TestTraffic(t *testing.T) {
	c := connect(t, *plain)
	for i, e := range exchanges {
		server := i % len(hosts.Guests)
		client := (server + 1) % len(hosts.Guests)
		began := time.Now()
		e.try(t, server, client)
		t.Logf("%s: %.1f s, %+v", e.command, time.Since(began).Seconds(), c.Losses.Reset())
	}
}

// attempts is how often an exchange is tried: with -R its client connects twice, and is rejected if the server
// does not listen for the second time yet.
const attempts = 5

// try runs server and client; both must succeed.
func (e exchange) try(t *testing.T, server, client int) {
	t.Helper()
	words := func(more string) string { return strings.ReplaceAll(e.command+" "+more, "IP", rig.IP(server)) }
	for attempt := 1; ; attempt++ {
		run(t, server, fmt.Sprintf("%s >/tmp/server 2>&1 & while ! %s; do usleep 20000; done", words(e.server), e.listening))
		_, err := hosts.Run(client, words(e.client))
		if err == nil {
			break
		}
		if attempt == attempts || !strings.Contains(err.Error(), "RDMA_CM_EVENT_REJECTED") {
			require.NoError(t, err)
		}
		run(t, server, "kill $!; wait $!; true")
	}
	run(t, server, "wait $! || { cat /tmp/server; false; }")
}
