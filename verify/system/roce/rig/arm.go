package rig

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"tributary/driver"
	"tributary/driver/virtual/cable"
	"tributary/driver/virtual/clock"
	"tributary/driver/virtual/frameport"
	"tributary/verify/system/frames"
)

// arm is the network of a one-armed card: a switch between the hosts, the owner and the card's one port. The
// hosts have static neighbour entries that give each other's addresses the card's MAC address.
type arm struct {
	hosts *Hosts
	stop  context.CancelFunc
	ended chan error
}

// broadcast is for the card alone: no host has anything else to find.
var broadcast = [6]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}

// ConnectOneArmed starts a card with one Ethernet port, like Connect, and puts a switch between it and the hosts. The
// places of Losses are the cables between hosts and switch.
func (h *Hosts) ConnectOneArmed(command []string) (*Card, error) {
	port := h.port(len(h.Guests) + 1)
	c, err := start(command, []string{port})
	if err != nil {
		return nil, err
	}
	var ports []string
	stations := map[[6]byte]int{[6]byte(ownerMAC): len(h.Guests), [6]byte(frames.CardMAC): len(h.Guests) + 1, broadcast: len(h.Guests) + 1}
	for i := range len(h.Guests) + 1 {
		ports = append(ports, h.port(i))
	}
	for i, n := range h.asNeighbours() {
		stations[[6]byte(n.MAC)] = i
	}
	var toCard frameport.Port
	if err := c.untilListening(func() (err error) {
		toCard, err = frameport.Attach(port+".switch", port)
		return err
	}); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	if c.arm, err = h.openArm(cable.NewSwitch(stations), ports, toCard); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return h.plugAll(c, ports)
}

// openArm runs the switch, and makes the hosts' neighbour entries.
func (h *Hosts) openArm(middle *cable.Switch, paths []string, toCard frameport.Port) (*arm, error) {
	var ports []frameport.Port
	for _, path := range paths {
		port, err := frameport.Open("unix:" + path)
		if err != nil {
			return nil, errors.Join(err, toCard.Close())
		}
		ports = append(ports, port)
	}
	ctx, stop := context.WithCancel(context.Background())
	a := &arm{hosts: h, stop: stop, ended: make(chan error, 1)}
	go func() { a.ended <- frameport.Serve(ctx, middle, clock.Start(middle), append(ports, toCard)) }()
	if err := h.neighbours("arp -s %s " + frames.CardMAC.String()); err != nil {
		return nil, errors.Join(err, a.Close())
	}
	return a, nil
}

// neighbours runs a command at each host for the address of each other one.
func (h *Hosts) neighbours(command string) error {
	return h.each(func(host int) error {
		for peer := range h.Guests {
			if peer == host {
				continue
			}
			if _, err := h.Run(host, fmt.Sprintf(command, IP(peer))); err != nil {
				return err
			}
		}
		return nil
	})
}

// asNeighbours returns the hosts as a card's neighbours.
func (h *Hosts) asNeighbours() (all []driver.Neighbour) {
	for i := range h.Guests {
		mac, _ := net.ParseMAC(MAC(i))
		all = append(all, driver.Neighbour{Address: netip.MustParseAddr(IP(i)), MAC: mac})
	}
	return all
}

// Close removes the neighbour entries and the switch.
func (a *arm) Close() error {
	a.stop()
	return errors.Join(<-a.ended, a.hosts.neighbours("arp -d %s"))
}
