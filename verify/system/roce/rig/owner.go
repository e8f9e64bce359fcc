package rig

import (
	"context"
	"errors"
	"net"
	"net/netip"

	"tributary/driver"
	"tributary/verify/system/frames"
)

// cardAt is where a card in software is, and one that hwgen generates.
var cardAt = netip.MustParseAddrPort("192.168.84.66:21570")

// The owner's host.
var (
	ownerMAC = net.HardwareAddr{0x02, 0x54, 0x52, 0x4f, 0, 1}
	ownerIP  = net.IPv4(192, 168, 84, 99)
)

// Owner is this process as the owner of a card, at an Ethernet port of its own.
type Owner struct {
	Card *driver.Card

	host    *frames.Host
	gateway *frames.Gateway
	arm     bool
}

// Own takes the card. A one-armed card then relays frames between the hosts.
func (c *Card) Own(ctx context.Context) (o *Owner, err error) {
	o = &Owner{arm: c.arm != nil}
	if o.host, err = frames.Attach(c.spare, ownerMAC, ownerIP); err != nil {
		return nil, err
	}
	go func() { // the card floods other hosts' broadcasts
		for range o.host.Others {
		}
	}()
	if o.gateway, err = frames.OpenGateway(cardAt, o.host); err != nil {
		return nil, errors.Join(err, o.Close())
	}
	if o.Card, err = driver.Open(ctx, o.gateway.Name()); err != nil {
		return nil, errors.Join(err, o.Close())
	}
	if o.arm {
		if err := o.Card.SetNeighbours(ctx, c.arm.hosts.asNeighbours()); err != nil {
			return nil, errors.Join(err, o.Close())
		}
	}
	return o, nil
}

// Close releases the card.
func (o *Owner) Close() error {
	var errs []error
	if o.Card != nil {
		errs = append(errs, o.Card.Close())
	}
	if o.gateway != nil {
		errs = append(errs, o.gateway.Close())
	}
	errs = append(errs, o.host.Close())
	return errors.Join(errs...)
}

// Ranks returns what the card needs to know of workers: rank r is the host r.
func (o *Owner) Ranks(ends []End) (ranks []driver.ConnectedRank) {
	for host, e := range ends {
		ip, _ := netip.AddrFromSlice(e.IP.To4())
		port := host
		if o.arm {
			port = 0
		}
		ranks = append(ranks, driver.ConnectedRank{
			Address: ip, MAC: e.MAC, EthernetPort: port, ReceiveQPN: e.ReceiveQPN, FirstPSN: e.PSN, MTU: e.MTU,
		})
	}
	return ranks
}
