//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// throughput is what iperf3 has measured at its receiver.
type throughput struct {
	Bytes   int64   `json:"bytes"`
	Seconds float64 `json:"seconds"`
}

// iperfSeconds is how long iperf3 sends.
const iperfSeconds = 8

// iperf runs iperf3 over TCP from one host to another, with at most rate bits a second.
func iperf(ctx context.Context, from, to int, rate int) (t throughput, err error) {
	server, err := start("iperf3 --server", command(ctx, within(to, []string{"iperf3", "--server", "--one-off", "--forceflush"})))
	if err != nil {
		return t, err
	}
	if err := server.await("Server listening"); err != nil {
		return t, err
	}
	words := []string{"iperf3", "--client", hostIP(receiving), "--bitrate", strconv.Itoa(rate), "--time", strconv.Itoa(iperfSeconds), "--json"}
	out, failed := command(ctx, within(from, words)).Output()
	if t, err = readThroughput(out); err != nil {
		return t, errors.Join(fmt.Errorf("iperf3: %w", err), failed)
	}
	return t, errors.Join(failed, server.cmd.Wait())
}

// readThroughput reads iperf3's output.
func readThroughput(out []byte) (throughput, error) {
	var result struct {
		Error string `json:"error"`
		End   struct {
			Received throughput `json:"sum_received"`
		} `json:"end"`
	}
	if err := json.Unmarshal(out, &result); err != nil {
		return throughput{}, err
	}
	if result.Error != "" {
		return throughput{}, errors.New(result.Error)
	}
	if result.End.Received.Bytes == 0 {
		return throughput{}, errors.New("nothing arrived")
	}
	return result.End.Received, nil
}

func (t throughput) String() string {
	took := time.Duration(t.Seconds * float64(time.Second)).Round(100 * time.Millisecond)
	return fmt.Sprintf("%.2f MB in %s, %.2f Mbit/s", float64(t.Bytes)/1e6, took, 8*float64(t.Bytes)/t.Seconds/1e6)
}
