// Package rc is an RDMA host in software: reliable connections (RC) under RoCEv2, for tests where no RDMA
// is. Whole Ethernet frames come and leave, with FCS; time is virtual. So the same calls give the same
// frames on every machine.
//
//	host := rc.New(rc.Address{MAC: mac, IP: ip})
//	pair := host.CreatePair(17)
//	err := pair.Connect(rc.Connection{Peer: peer, PeerQPN: 42, MTU: 1024, Timeout: 14, Retries: 6})
//	err = pair.PostSend(rc.Request{Data: message})
//	frame, _, ok := host.Send(nil) // ... and Receive, and Advance
//	done, ok := pair.PollSend()
//
// A Host is an ethernet.Device with one port: frameport.Serve runs it at a socket, and package cable joins
// it to cards and other hosts. A Worker sums an array on a ring of such hosts through a card of shell roce,
// by the rules of driver/wire/ROCE.md, section 7.
//
// The host does what an endpoint of Linux's Soft-RoCE (rdma_rxe) does: SEND and RDMA WRITE with and without
// immediate, go-back-N, one NAK a gap, an ACK for each duplicate and each packet that requests one. It has
// no READ, no atomics, no UD, and does not wait after an RNR NAK: that ends the queue pair.
//
// Sources: InfiniBand Architecture Specification, volume 1, sections 9.4 to 9.9 (RC), and annex A17.
package rc
