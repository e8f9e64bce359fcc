package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// Messages of the ping-pong.
const (
	pingBytes  = 64
	pingRounds = 20_000
)

// measureAlpha returns the fixed cost of a step: half the median round trip of 64 bytes over TCP on the loopback,
// between two processes of this program. It is the time of two hosts' stacks and schedulers, and has no network.
func measureAlpha(ctx context.Context) (seconds float64, err error) {
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	other := exec.CommandContext(ctx, self, "-echo")
	stdout, err := other.StdoutPipe()
	if err != nil {
		return 0, err
	}
	if err := other.Start(); err != nil {
		return 0, err
	}
	defer other.Wait() // it ends with the connection
	address, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		return 0, fmt.Errorf("the other process of the ping-pong has no address: %w", err)
	}
	return pingPong(strings.TrimSpace(address), pingRounds)
}

// pingPong returns half the median of so many round trips to an echo, in seconds.
func pingPong(address string, count int) (seconds float64, err error) {
	connection, err := net.Dial("tcp", address)
	if err != nil {
		return 0, err
	}
	defer connection.Close()
	message := make([]byte, pingBytes)
	rounds := make([]time.Duration, count)
	for i := range rounds {
		start := time.Now()
		if _, err := connection.Write(message); err != nil {
			return 0, err
		}
		if _, err := io.ReadFull(connection, message); err != nil {
			return 0, err
		}
		rounds[i] = time.Since(start)
	}
	slices.Sort(rounds)
	return rounds[len(rounds)/2].Seconds() / 2, nil
}

// echo is the other process: it prints its address, and sends back what one connection brings.
func echo(stdout io.Writer) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer listener.Close()
	fmt.Fprintln(stdout, listener.Addr())
	connection, err := listener.Accept()
	if err != nil {
		return err
	}
	defer connection.Close()
	message := make([]byte, pingBytes)
	for {
		if _, err := io.ReadFull(connection, message); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		if _, err := connection.Write(message); err != nil {
			return err
		}
	}
}
