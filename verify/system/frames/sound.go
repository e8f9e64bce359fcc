package frames

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
)

// CheckSound checks FCS, size, lengths and checksums of a frame, as gopacket sees them. Of protocols
// other than IPv4 it checks FCS and size alone.
func CheckSound(frame []byte) error {
	if len(frame) < 64 {
		return fmt.Errorf("%d bytes are a runt", len(frame))
	}
	body := frame[:len(frame)-4]
	if !bytes.Equal(Closed(bytes.Clone(body)), frame) {
		return errors.New("wrong FCS")
	}
	p := gopacket.NewPacket(body, layers.LayerTypeEthernet, gopacket.Default)
	network, ok := p.Layer(layers.LayerTypeIPv4).(*layers.IPv4)
	if !ok {
		return nil
	}
	if network.Protocol == layers.IPProtocolUDP && p.Layer(layers.LayerTypeUDP) == nil ||
		network.Protocol == layers.IPProtocolICMPv4 && p.Layer(layers.LayerTypeICMPv4) == nil {
		if p.ErrorLayer() == nil {
			return errors.New("a fragment")
		}
		return p.ErrorLayer().Error() // what a UDP datagram carries may be anything
	}
	if u, ok := p.Layer(layers.LayerTypeUDP).(*layers.UDP); ok {
		if err := u.SetNetworkLayerForChecksum(network); err != nil {
			return err
		}
		if u.Checksum == 0 {
			return errors.New("UDP without a checksum")
		}
	}
	err, wrong := p.VerifyChecksums()
	if err == nil && len(wrong) > 0 {
		err = fmt.Errorf("wrong checksums: %v", wrong)
	}
	return err
}
