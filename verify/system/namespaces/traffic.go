package main

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"time"
)

// Hosts at the ends of the traffic.
const (
	pinging, pinged    = 0, 1
	sending, receiving = 2, 3
)

// The traffic's parameters.
const (
	batch    = 5  // pings of one process
	patience = 10 // seconds until a ping is lost
	seconds  = 8  // of iperf3
)

// pings counts echo requests and their replies.
type pings struct{ sent, received int }

// throughput is what iperf3 has measured at its receiver.
type throughput struct {
	Bytes   int64   `json:"bytes"`
	Seconds float64 `json:"seconds"`
}

// pingUntil pings from one host to another until enough were sent and over is closed. It works in
// batches, since a ping that is interrupted has a request under way.
func pingUntil(ctx context.Context, pid int, enough int, over <-chan struct{}, show func(sent int)) (p pings, err error) {
	for {
		words := within(pid, []string{"ping", "-n", "-q", "-i", "0.2", "-c", strconv.Itoa(batch), "-W", strconv.Itoa(patience), hostIP(pinged)})
		out, failed := command(ctx, words).CombinedOutput()
		more, err := readPings(string(out))
		if err != nil {
			return p, fmt.Errorf("%w (%v)", err, failed)
		}
		p.sent, p.received = p.sent+more.sent, p.received+more.received
		show(p.sent)
		if p.sent < enough {
			continue
		}
		select {
		case <-over:
			return p, nil
		default:
		}
	}
}

// summary is a line of ping's output.
var summary = regexp.MustCompile(`(\d+) packets transmitted, (\d+) received`)

// readPings reads ping's output.
func readPings(out string) (p pings, err error) {
	found := summary.FindStringSubmatch(out)
	if found == nil {
		return p, fmt.Errorf("ping printed no summary: %q", out)
	}
	if p.sent, err = strconv.Atoi(found[1]); err != nil {
		return p, err
	}
	p.received, err = strconv.Atoi(found[2])
	return p, err
}

// iperf runs iperf3 from one host to another, at most at a rate in bits a second.
func iperf(ctx context.Context, from, to int, rate int) (throughput, error) {
	server, err := start("iperf3 -s", command(ctx, within(to, []string{"iperf3", "--server", "--one-off", "--forceflush"})))
	if err != nil {
		return throughput{}, err
	}
	if err := server.await("Server listening"); err != nil {
		return throughput{}, err
	}
	words := []string{"iperf3", "--client", hostIP(receiving), "--bitrate", strconv.Itoa(rate), "--time", strconv.Itoa(seconds), "--json"}
	out, failed := command(ctx, within(from, words)).Output()
	t, err := readThroughput(out)
	if err != nil {
		return t, fmt.Errorf("%w (%v)", err, failed)
	}
	return t, server.cmd.Wait()
}

// readThroughput reads iperf3's output.
func readThroughput(out []byte) (t throughput, err error) {
	var result struct {
		Error string `json:"error"`
		End   struct {
			Received throughput `json:"sum_received"`
		} `json:"end"`
	}
	if err := json.Unmarshal(out, &result); err != nil {
		return t, fmt.Errorf("iperf3 printed no result: %w", err)
	}
	if result.Error != "" {
		return t, fmt.Errorf("iperf3: %s", result.Error)
	}
	if result.End.Received.Bytes == 0 {
		return t, fmt.Errorf("iperf3: nothing arrived")
	}
	return result.End.Received, nil
}

func (p pings) String() string {
	return fmt.Sprintf("%d of %d replies", p.received, p.sent)
}

func (t throughput) String() string {
	took := time.Duration(t.Seconds * float64(time.Second)).Round(100 * time.Millisecond)
	return fmt.Sprintf("%.2f MB in %s, %.2f Mbit/s", float64(t.Bytes)/1e6, took, 8*float64(t.Bytes)/t.Seconds/1e6)
}
