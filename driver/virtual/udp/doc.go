// Package udp puts a card in software behind a UDP socket: the card is then on the network, as
// driver/wire/NETWORK.md describes it, at the socket's address. A test starts one in three lines:
//
//	socket, err := udp.Listen("127.0.0.1:0")
//	card, err := model.NewEndpoint(model.Config{Lanes: 4, Ports: 4, Window: 8, Shell: wire.ShellUDP, Link: 64}, socket.Address())
//	go socket.Serve(ctx, card) // hosts reach it as socket.Name(), "udp:127.0.0.1:21570"
//
// Sockets show neither MAC addresses nor Ethernet ports, so both are 0 in every address here. On
// Linux the card sees and sets the ECN field of IP, and its datagrams are never fragmented. On other
// systems all datagrams arrive with the mark not-ECT, and leave with it.
package udp
