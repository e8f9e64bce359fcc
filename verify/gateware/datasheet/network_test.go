package datasheet

import (
	"encoding/binary"
	"encoding/hex"
	"net"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tributary/driver/model"
	"tributary/driver/wire"
)

// Sizes of headers, and places in a frame.
const (
	macBytes  = 14
	ipBytes   = 20
	udpBytes  = 8
	atIP      = macBytes
	atUDP     = atIP + ipBytes
	atPayload = atUDP + udpBytes
)

// onNetwork executes a recipe of Ethernet frames. The model takes the datagrams in them; the frames
// are checked here, and so is ARP.
func onNetwork(t *testing.T, m cardManifest, lines [][]string) {
	t.Helper()
	own := ownAddress(t, m)
	e, err := model.NewEndpoint(m.config(), own)
	require.NoError(t, err)
	var waiting []string
	for _, words := range lines {
		require.Len(t, words, 2, "a line has a whole frame")
		if words[0] == "receive" {
			require.NotEmpty(t, waiting, words)
			assert.Equal(t, waiting[0], words[1])
			waiting = waiting[1:]
			continue
		}
		require.Equal(t, "send", words[0])
		require.Empty(t, waiting, "before %s", words)
		frame := unhex(t, words[1])
		require.GreaterOrEqual(t, len(frame), 60)
		if binary.BigEndian.Uint16(frame[12:]) == 0x0806 {
			waiting = append(waiting, hex.EncodeToString(arpReply(t, frame, own)))
			continue
		}
		from, to, mark, datagram := openFrame(t, frame)
		require.Equal(t, own, to)
		e.Receive(datagram, from, mark)
		for {
			datagram, to, mark, ok := e.Send(nil)
			if !ok {
				break
			}
			waiting = append(waiting, hex.EncodeToString(makeFrame(own, to, mark, datagram)))
		}
	}
	assert.Empty(t, waiting)
	assert.Equal(t, uint64(jobEnded), jobState(t, e, own))
}

// ownAddress returns the card's own address in a manifest.
func ownAddress(t *testing.T, m cardManifest) wire.Address {
	t.Helper()
	mac, err := net.ParseMAC(m.MAC)
	require.NoError(t, err)
	ip, err := netip.ParseAddr(m.IP)
	require.NoError(t, err)
	return address(mac, ip.AsSlice(), m.UDPPort)
}

// address returns an address at Ethernet port 0.
func address(mac, ip []byte, port uint16) wire.Address {
	return wire.Address{
		Station: uint64(port)<<32 | uint64(binary.BigEndian.Uint32(ip)),
		MAC:     binary.BigEndian.Uint64(append([]byte{0, 0}, mac...)),
	}
}

// addressBytes is the inverse of address.
func addressBytes(a wire.Address) (mac, ip []byte, port uint16) {
	return binary.BigEndian.AppendUint64(nil, a.MAC)[2:], binary.BigEndian.AppendUint32(nil, uint32(a.Station)), uint16(a.Station >> 32)
}

// jobState reads JOB_STATE of job 0.
func jobState(t *testing.T, e *model.Endpoint, from wire.Address) uint64 {
	t.Helper()
	read := model.AppendDatagram(nil, &model.Packet{Header: model.Header{Version: wire.Version, Kind: wire.KindRegRead, VID: wire.RegJobState}})
	e.Receive(read, from, wire.ECT0)
	reply, _, _, ok := e.Send(nil)
	require.True(t, ok)
	return model.ParseHeader(reply).Mask
}

// openFrame checks a frame with a UDP datagram. It returns sender and receiver, the mark in the IP
// header, and the payload.
func openFrame(t *testing.T, f []byte) (from, to wire.Address, mark wire.ECN, payload []byte) {
	t.Helper()
	ip, udp := f[atIP:atUDP], f[atUDP:]
	assert.Equal(t, uint16(0x0800), binary.BigEndian.Uint16(f[12:]), "IPv4")
	assert.EqualValues(t, 0x45, ip[0], "no options")
	assert.EqualValues(t, len(f)-macBytes, binary.BigEndian.Uint16(ip[2:]), "no padding")
	assert.Zero(t, binary.BigEndian.Uint16(ip[6:])&0x3fff, "no fragment")
	assert.EqualValues(t, 17, ip[9], "UDP")
	assert.EqualValues(t, 0xffff, wordSum(ip), "the IP header's checksum")
	assert.EqualValues(t, len(udp), binary.BigEndian.Uint16(udp[4:]))
	assert.NotZero(t, binary.BigEndian.Uint16(udp[6:]), "a UDP checksum is there")
	assert.EqualValues(t, 0xffff, wordSum(pseudoHeader(ip, len(udp)), udp), "the UDP checksum")
	from = address(f[6:12], ip[12:16], binary.BigEndian.Uint16(udp))
	to = address(f[:6], ip[16:20], binary.BigEndian.Uint16(udp[2:]))
	return from, to, wire.ECN(ip[1] & 3), udp[udpBytes:]
}

// makeFrame makes a frame as a card does: identification 0, don't fragment, 64 hops.
func makeFrame(from, to wire.Address, mark wire.ECN, datagram []byte) []byte {
	f := make([]byte, atPayload, atPayload+len(datagram))
	ip, udp := f[atIP:atUDP], f[atUDP:]
	fromMAC, fromIP, fromPort := addressBytes(from)
	toMAC, toIP, toPort := addressBytes(to)
	copy(f, toMAC)
	copy(f[6:], fromMAC)
	f[12], f[13] = 8, 0
	ip[0], ip[1] = 0x45, byte(mark)
	binary.BigEndian.PutUint16(ip[2:], uint16(ipBytes+udpBytes+len(datagram)))
	ip[6], ip[8], ip[9] = 0x40, 64, 17
	copy(ip[12:], fromIP)
	copy(ip[16:], toIP)
	binary.BigEndian.PutUint16(ip[10:], ^wordSum(ip))
	binary.BigEndian.PutUint16(udp, fromPort)
	binary.BigEndian.PutUint16(udp[2:], toPort)
	binary.BigEndian.PutUint16(udp[4:], uint16(udpBytes+len(datagram)))
	f = append(f, datagram...)
	sum := ^wordSum(pseudoHeader(ip, udpBytes+len(datagram)), f[atUDP:])
	if sum == 0 {
		sum = 0xffff
	}
	binary.BigEndian.PutUint16(f[atUDP+6:], sum)
	return f
}

// pseudoHeader returns what the UDP checksum covers besides the datagram.
func pseudoHeader(ip []byte, length int) []byte {
	return binary.BigEndian.AppendUint16(append(append([]byte{}, ip[12:20]...), 0, 17), uint16(length))
}

// wordSum returns the ones' complement sum of the 16-bit words of parts; only the last may be odd.
func wordSum(parts ...[]byte) uint16 {
	var sum uint64
	for _, p := range parts {
		for ; len(p) > 1; p = p[2:] {
			sum += uint64(binary.BigEndian.Uint16(p))
		}
		if len(p) == 1 {
			sum += uint64(p[0]) << 8
		}
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return uint16(sum)
}

// arpReply checks a request for the card's IPv4 address, and returns the reply (RFC 826).
func arpReply(t *testing.T, request []byte, own wire.Address) []byte {
	t.Helper()
	mac, ip, _ := addressBytes(own)
	assert.Equal(t, "ffffffffffff", hex.EncodeToString(request[:6]), "to all")
	assert.Equal(t, "00010800060400"+"01", hex.EncodeToString(request[14:22]), "a request")
	assert.Equal(t, request[6:12], request[22:28], "the sender's MAC address, twice")
	assert.Equal(t, ip, request[38:42], "the card's IPv4 address")
	reply := make([]byte, 60)
	copy(reply, request[6:12])
	copy(reply[6:], mac)
	copy(reply[12:], request[12:21])
	reply[21] = 2
	copy(reply[22:], mac)
	copy(reply[28:], ip)
	copy(reply[32:], request[22:32])
	return reply
}
