//go:build linux

package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// lines returns commands as a person types them.
func lines(commands [][]string) (typed []string) {
	for _, words := range commands {
		typed = append(typed, strings.Join(words, " "))
	}
	return typed
}

// TestNetworks: the commands that join a card and four hosts.
func TestNetworks(t *testing.T) {
	pids := []int{101, 102, 103, 104}
	assert.Equal(t, []string{
		"ip link add bridge type bridge",
		"ip link set bridge up",
		"ip link set card0 master bridge up",
		"ip link add port0 type veth peer name eth0 netns 101",
		"ip link set port0 master bridge up",
		"ip link add port1 type veth peer name eth0 netns 102",
		"ip link set port1 master bridge up",
		"ip link add port2 type veth peer name eth0 netns 103",
		"ip link set port2 master bridge up",
		"ip link add port3 type veth peer name eth0 netns 104",
		"ip link set port3 master bridge up",
	}, lines(oneArmed(pids)))
	assert.Equal(t, []string{
		"ip link set card0 netns 101 name eth0",
		"ip link set card1 netns 102 name eth0",
		"ip link set card2 netns 103 name eth0",
		"ip link set card3 netns 104 name eth0",
	}, lines(inPath(pids)))
	assert.Equal(t, []string{
		"ip link set lo up",
		"ip address add 192.168.84.3/24 dev eth0",
		"ip link set eth0 up",
	}, lines(address(2)))
	assert.Equal(t, "nsenter --target 104 --net -- ping 192.168.84.2", strings.Join(within(104, []string{"ping", "192.168.84.2"}), " "))
}
