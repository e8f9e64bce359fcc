package wire

// Address is where datagrams of a card on a network come from and go to: the values of an ADDRESS
// register and of the MAC register beside it.
type Address struct {
	Station uint64 // bits 31:0 IPv4 address, first byte highest; 47:32 UDP port
	MAC     uint64 // bits 47:0 MAC address, first byte highest; 55:48 number of the Ethernet port
}
