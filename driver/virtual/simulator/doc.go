// Package simulator runs a card in a simulator's process: the gateware of a card with shell udp, at its
// Ethernet ports. The process speaks records on its standard input and output: a type, an Ethernet port,
// the number of bytes that follow (16 bits), and these bytes. All numbers are little-endian.
//
//	to the card
//	'F'  a frame with its FCS comes at the port
//	'A'  8 bytes: run at least until that clock cycle
//	'I'  run until nothing moves any more
//
//	from the card
//	'F'  a frame with its FCS leaves at the port
//	'I'  8 bytes, the clock cycle: the answer to 'A' and 'I', behind all frames that have left
//
// The port of 'A' and 'I' is 0. The process ends with its standard input.
package simulator
