package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"tributary/driver/wire"
)

// stationFlags are the flags of commands that run a card with Ethernet ports: the card's own address.
type stationFlags struct {
	mac macFlag
	ip  ipFlag
}

func (f *stationFlags) add(cmd *cobra.Command) {
	f.mac, f.ip = macFlag(wire.NetworkMAC), ipFlag(netip.AddrPortFrom(ipOf(wire.NetworkIP), wire.NetworkPort))
	cmd.Flags().Var(&f.mac, "mac", "give a card in software this MAC `ADDRESS`")
	cmd.Flags().Var(&f.ip, "ip", "give a card in software this IPv4 `ADDRESS[:PORT]`, with the UDP port")
}

// set returns which of the flags is set, or nil.
func (f *stationFlags) set(cmd *cobra.Command) (set *pflag.Flag) {
	for _, name := range []string{"ip", "mac"} {
		if flag := cmd.Flags().Lookup(name); flag.Changed {
			set = flag
		}
	}
	return set
}

// own returns the card's own address.
func (f *stationFlags) own() wire.Address {
	at := netip.AddrPort(f.ip)
	ip := at.Addr().As4()
	return wire.Address{
		Station: uint64(at.Port())<<32 | uint64(binary.BigEndian.Uint32(ip[:])),
		MAC:     uint64(f.mac),
	}
}

// describe describes the card's own address.
func (f *stationFlags) describe() string {
	return fmt.Sprintf("%s at %s", netip.AddrPort(f.ip), f.mac.String())
}

// ipOf returns an IPv4 address, of which the first byte is the highest.
func ipOf(ip uint32) netip.Addr {
	return netip.AddrFrom4([4]byte(binary.BigEndian.AppendUint32(nil, ip)))
}

// macFlag is a MAC address, of which the first byte is the highest.
type macFlag uint64

func (m *macFlag) Set(s string) error {
	mac, err := wire.ParseMAC(s)
	if err != nil {
		return fmt.Errorf("it %w", err)
	}
	*m = macFlag(mac)
	return nil
}

func (m *macFlag) String() string { return wire.MACText(uint64(*m)) }
func (m *macFlag) Type() string   { return "mac" }

// ipFlag is an IPv4 address and a UDP port.
type ipFlag netip.AddrPort

func (f *ipFlag) Set(s string) error {
	at, err := netip.ParseAddrPort(s)
	if err != nil {
		ip, err2 := netip.ParseAddr(s)
		at, err = netip.AddrPortFrom(ip, wire.NetworkPort), err2
	}
	if err == nil {
		_, err = wire.ParseIP(at.Addr().String())
	}
	if err != nil || at.Port() == 0 {
		return errors.New("it must be the IPv4 address of one card, as in 192.168.84.66, or with a UDP port, as in 192.168.84.66:21570")
	}
	*f = ipFlag(at)
	return nil
}

func (f *ipFlag) String() string { return netip.AddrPort(*f).String() }
func (f *ipFlag) Type() string   { return "address" }
