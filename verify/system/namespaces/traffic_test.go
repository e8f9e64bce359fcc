//go:build linux

package main

import (
	"bufio"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// always lets ping go on.
func always(*pings) bool { return true }

// TestPings: replies are counted once each, a ping is lost if a later one was answered, and one that is
// under way at the end is not.
func TestPings(t *testing.T) {
	const first = "PING 192.168.84.2 (192.168.84.2) 56(84) bytes of data.\n64 bytes from 192.168.84.2: icmp_seq=1 ttl=64 time=4.98 ms\n"
	for name, test := range map[string]struct {
		rest string
		want string
		lost bool
	}{
		"all":         {"64 bytes from 192.168.84.2: icmp_seq=2 ttl=64 time=5.1 ms\n", "2 of 2 requests answered", false},
		"lost":        {"64 bytes from 192.168.84.2: icmp_seq=3 ttl=64 time=5.1 ms\n", "2 of 3 requests answered", true},
		"repeated":    {"64 bytes from 192.168.84.2: icmp_seq=1 ttl=64 time=9.1 ms (DUP!)\n", "1 of 1 requests answered", false},
		"in disorder": {"64 bytes from 192.168.84.2: icmp_seq=3 ttl=64 time=5.1 ms\n64 bytes from 192.168.84.2: icmp_seq=2 ttl=64 time=205 ms\n", "3 of 3 requests answered", false},
		"unreachable": {"From 192.168.84.1 icmp_seq=2 Destination Host Unreachable\n", "1 of 1 requests answered", false},
		"unreachable, then answered": {"From 192.168.84.1 icmp_seq=2 Destination Host Unreachable\n64 bytes from 192.168.84.2: icmp_seq=3 ttl=64 time=5.1 ms\n",
			"2 of 3 requests answered", true},
	} {
		p, err := readPings(bufio.NewReader(strings.NewReader(first+test.rest)), always)
		assert.ErrorContains(t, err, test.want+", then none for 30s", name)
		assert.Equal(t, test.want, p.String(), name)
		if test.lost {
			assert.EqualError(t, p.check(), "ping: "+test.want, name)
		} else {
			assert.NoError(t, p.check(), name)
		}
	}
}

// TestPingsEnd: reading ends when the caller has enough, also while a request is under way.
func TestPingsEnd(t *testing.T) {
	out := bufio.NewReader(strings.NewReader("64 bytes from 192.168.84.2: icmp_seq=1 ttl=64 time=5 ms\n64 bytes from 192.168.84.2: icmp_seq=2 ttl=64 time=5 ms\nrest"))
	p, err := readPings(out, func(p *pings) bool { return p.highest < 2 })
	require.NoError(t, err)
	assert.Equal(t, "2 of 2 requests answered", p.String())
	rest, _ := out.ReadString('\n')
	assert.Equal(t, "rest", rest)
}

// TestThroughput: iperf3's result is its receiver's.
func TestThroughput(t *testing.T) {
	got, err := readThroughput([]byte(`{"end": {"sum_sent": {"bytes": 9, "seconds": 1}, "sum_received": {"seconds": 8.04, "bytes": 2010000}}}`))
	require.NoError(t, err)
	assert.Equal(t, "2.01 MB in 8s, 2.00 Mbit/s", got.String())
	for out, want := range map[string]string{
		`{"end": {}, "error": "unable to connect to server: No route to host"}`: "unable to connect to server: No route to host",
		`{"end": {"sum_received": {"bytes": 0, "seconds": 8}}}`:                 "nothing arrived",
		``: "unexpected end of JSON input",
	} {
		_, err := readThroughput([]byte(out))
		assert.EqualError(t, err, want)
	}
}

// TestCounters: pings pass through a card in path, and every checksum is right.
func TestCounters(t *testing.T) {
	const out = `{"card": "udp:192.168.84.66", "counters": [{"name": "stored", "value": 7}, {"name": "checksum", "value": CHECKSUM}, {"name": "passed", "value": PASSED}]}`
	three := &pings{answered: map[int]bool{1: true, 2: true, 3: true}, highest: 3}
	for _, test := range []struct {
		ports            int
		passed, checksum string
		want             string
	}{
		{1, "0", "0", ""},
		{4, "6", "0", ""},
		{4, "5", "0", "the card has passed 5 frames; the pings and their replies are 6"},
		{1, "0", "2", "2 datagrams had a wrong checksum"},
	} {
		c, err := readCounters([]byte(strings.NewReplacer("PASSED", test.passed, "CHECKSUM", test.checksum).Replace(out)))
		require.NoError(t, err)
		assert.Equal(t, "7 contributions stored, "+test.passed+" frames passed between hosts, 0 dropped", c.String())
		if err := c.check(test.ports, three); test.want == "" {
			assert.NoError(t, err)
		} else {
			assert.EqualError(t, err, test.want)
		}
	}
	_, err := readCounters([]byte("no card"))
	assert.ErrorContains(t, err, "tributary info: ")
}
