//go:build linux

package main

import (
	"fmt"
	"strconv"
)

// hosts is the number of hosts, each with a worker.
const hosts = 4

// Addresses of the network.
const (
	cardIP = "192.168.84.66" // of a new card
	prefix = "/24"
)

// hostIP returns the address of a host.
func hostIP(host int) string { return fmt.Sprintf("192.168.84.%d", 1+host) }

// network is a way to join the card and the hosts. Commands run in the namespace where the card's TAP
// devices appear. pids are processes in the hosts' namespaces.
type network struct {
	title string
	ports int // Ethernet ports of the card
	rate  int // bits a second that iperf3 may send; the simulated card is slow
	join  func(pids []int) [][]string
}

var networks = []network{
	{"One-armed: a learning bridge joins the card and the hosts", 1, 50_000_000, oneArmed},
	{"In path: the card is the switch between the hosts", hosts, 500_000, inPath},
}

// tap returns the name of the TAP device of a card's Ethernet port.
func tap(port int) string { return "card" + strconv.Itoa(port) }

// cable is the name of the network interface in each host's namespace.
const cable = "eth0"

// oneArmed bridges the card's TAP device and a cable to each host. A TAP device offloads nothing: the
// kernel completes the checksums of frames that leave there.
func oneArmed(pids []int) [][]string {
	commands := [][]string{
		{"ip", "link", "add", "bridge", "type", "bridge"},
		{"ip", "link", "set", "bridge", "up"},
		{"ip", "link", "set", tap(0), "master", "bridge", "up"},
	}
	for host, pid := range pids {
		end := "port" + strconv.Itoa(host)
		commands = append(commands,
			[]string{"ip", "link", "add", end, "type", "veth", "peer", "name", cable, "netns", strconv.Itoa(pid)},
			[]string{"ip", "link", "set", end, "master", "bridge", "up"})
	}
	return commands
}

// inPath moves a TAP device of the card into each host's namespace.
func inPath(pids []int) (commands [][]string) {
	for host, pid := range pids {
		commands = append(commands, []string{"ip", "link", "set", tap(host), "netns", strconv.Itoa(pid), "name", cable})
	}
	return commands
}

// address gives a host its address. The commands run in the host's namespace.
func address(host int) [][]string {
	return [][]string{
		{"ip", "link", "set", "lo", "up"},
		{"ip", "address", "add", hostIP(host) + prefix, "dev", cable},
		{"ip", "link", "set", cable, "up"},
	}
}

// within returns a command that runs in the network namespace of a process.
func within(pid int, command []string) []string {
	return append([]string{"nsenter", "--target", strconv.Itoa(pid), "--net", "--"}, command...)
}
