package rc

import (
	"bytes"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	"tributary/driver/virtual/ethernet"
)

// answerARP answers a request for the host's address (RFC 826), so that peers with a kernel find it. It
// returns false for any other frame. The FCS is right.
func (h *Host) answerARP(frame []byte) bool {
	packet := gopacket.NewPacket(frame[:len(frame)-ethernet.FCSBytes], layers.LayerTypeEthernet, gopacket.NoCopy)
	request, ok := packet.Layer(layers.LayerTypeARP).(*layers.ARP)
	if !ok || request.Operation != layers.ARPRequest || !bytes.Equal(request.DstProtAddress, h.own.IP.AsSlice()) {
		return false
	}
	reply := serialize(
		&layers.Ethernet{SrcMAC: h.own.MAC[:], DstMAC: request.SourceHwAddress, EthernetType: layers.EthernetTypeARP},
		&layers.ARP{
			AddrType: request.AddrType, Protocol: request.Protocol, HwAddressSize: request.HwAddressSize, ProtAddressSize: request.ProtAddressSize,
			Operation: layers.ARPReply, SourceHwAddress: h.own.MAC[:], SourceProtAddress: h.own.IP.AsSlice(),
			DstHwAddress: request.SourceHwAddress, DstProtAddress: request.SourceProtAddress,
		})
	h.replies = append(h.replies, ethernet.AppendFCS(ethernet.Pad(reply)))
	return true
}
