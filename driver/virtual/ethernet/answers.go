package ethernet

import "encoding/binary"

// longestEcho is the size of the longest IP packet with an echo request that the card answers.
const longestEcho = 1500

// appendARPReply appends the answer to an ARP request. It goes to the sender in the request, which
// need not be that of the frame.
func appendARPReply(dst, request []byte, own station) []byte {
	asker := request[atARPFrom:atARPTo] // MAC and IPv4 address
	dst = appendEther(dst, mac(asker), own.mac, etherTypeARP)
	dst = binary.BigEndian.AppendUint64(dst, arpReply)
	dst = append(dst, own.mac[:]...)
	dst = append(dst, own.ip[:]...)
	return append(dst, asker...)
}

// appendEchoReply appends the answer to an echo request, with an IP header of its own. The checksum
// is that of the request, corrected for the type (RFC 1624): a damaged request could become a damaged
// answer only. A sum of 0 and of 0xffff are the same, and 0xffff leaves.
func appendEchoReply(dst []byte, request *view) []byte {
	data := request.data()
	dst = appendEther(dst, request.mac(atSource), request.own.mac, etherTypeIPv4)
	dst = appendIPv4(dst, protocolICMP, 0, len(data), request.own.ip, request.ip(atFromIP))
	dst = binary.BigEndian.AppendUint16(dst, echoReply)
	dst = binary.BigEndian.AppendUint16(dst, (checksum(request.word(atICMPChecksum)) + echoRequest).fold())
	return append(dst, data[atICMPChecksum+2-atIPData:]...)
}
