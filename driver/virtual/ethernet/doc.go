// Package ethernet puts a card in software behind Ethernet ports: frames in, frames out, as section 2
// ("Frames") and section 7 of driver/wire/NETWORK.md define them. It is what shell udp does in hardware
// between the MACs and the core, byte for byte. A Card has no device; package frameport moves its
// frames.
//
//	endpoint, err := model.NewEndpoint(config, own)
//	card := ethernet.New(endpoint, 2)
//	card.Receive(0, frame) // with FCS
//	for {
//		frame, port, ok := card.Send(nil)
//		...
//	}
//
// The frames of RDMA connections, with shell roce, are those of driver/wire/ROCE.md; model.Endpoint judges and
// makes them.
//
// Sources: RFC 826 (ARP), RFC 791 (IPv4), RFC 792 (ICMP), RFC 768 (UDP), RFC 1071 and RFC 1624
// (checksums), IEEE 802.1D, section 7 (a learning bridge).
package ethernet
