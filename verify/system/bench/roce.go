package main

// A packet that is lost under RoCEv2: which connections notice. All of it runs on a virtual clock, so the
// counts are the same on every machine.

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"tributary/driver/model"
	"tributary/driver/virtual/cable"
	"tributary/driver/virtual/ethernet"
	"tributary/driver/virtual/rc"
	around "tributary/driver/virtual/ring"
	"tributary/driver/wire"
	"tributary/verify/system/frames"
)

// roceJob is NetReduce's: messages of 170 packets, two in flight, but fewer ranks on a small card.
var roceJob = rc.Job{Ranks: 6, Bytes: 4 * 170 * 1024, MTU: 1024, Packets: 170, Window: 512, Timeout: 14, Retries: 6}

// roceLost is the VID whose packet from rank 0 is lost, once, before the card.
const roceLost = 200

// roceRows counts repeats and NAKs on each connection after one loss.
func roceRows(context.Context) ([]Row, error) {
	progress("losing a packet under RoCEv2")
	endpoint, err := model.NewEndpoint(model.Config{
		Lanes: 16, Ports: roceJob.Ranks, Chunk: 256, Window: 512, Format: wire.Int32, Result: wire.Int32,
		Shell: wire.ShellRoCE, Link: 64, Ethernet: roceJob.Ranks,
	}, frames.CardAddress)
	if err != nil {
		return nil, err
	}
	card, err := ethernet.New(endpoint, roceJob.Ranks)
	if err != nil {
		return nil, err
	}
	r, err := around.New(card, around.Config{Job: roceJob, Seed: 1})
	if err != nil {
		return nil, err
	}
	if err := setUpRing(card, r); err != nil {
		return nil, err
	}
	if err := r.Connect(); err != nil {
		return nil, err
	}
	lost := false
	r.Cables[0].Drop = func(from cable.Port, frame []byte) bool {
		p, err := rc.Parse(frame)
		if lost || from.Device != around.Device(0) || err != nil || p.BTH.PSN != (around.FirstPSN(0)+roceLost)%(1<<24) {
			return false
		}
		lost = p.BTH.Opcode != wire.OpAcknowledge
		return lost
	}
	want := make([]byte, roceJob.Bytes)
	for rank, w := range r.Workers {
		array := make([]byte, roceJob.Bytes)
		for i := 0; i < len(array); i += 4 {
			value := uint32((i + 1) * (rank + 3) * 0x9e3779b1)
			binary.LittleEndian.PutUint32(array[i:], value)
			binary.LittleEndian.PutUint32(want[i:], binary.LittleEndian.Uint32(want[i:])+value)
		}
		if err := w.Start(array); err != nil {
			return nil, err
		}
	}
	if !r.Run(time.Minute) {
		return nil, errors.New("the ring is not done in a minute")
	}
	if !lost {
		return nil, errors.New("no packet was lost")
	}
	var own, others rc.Stats
	for rank, w := range r.Workers {
		sum, _, err := w.Outcome()
		if err != nil {
			return nil, fmt.Errorf("rank %d: %w", rank, err)
		}
		if !bytes.Equal(sum, want) {
			return nil, fmt.Errorf("rank %d: a wrong sum", rank)
		}
		send, _ := w.Pairs()
		count := &others
		if rank == 0 {
			count = &own
		}
		count.Repeats += send.Stats().Repeats
		count.NAKs += send.Stats().NAKs
	}
	none := func(what string, own, others int) Row {
		return Row{Name: "RoCEv2, one packet lost before the card: " + what + " on the other five connections", Value: float64(others), Unit: what}.
			beside("on its own connection", float64(own)).must("0", others == 0)
	}
	return []Row{none("repeats", own.Repeats, others.Repeats), none("NAKs", own.NAKs, others.NAKs)}, nil
}

// setUpRing registers the connections of a ring, and commits its job.
func setUpRing(card *ethernet.Card, r *around.Ring) error {
	write := func(addr uint32, value uint64) error {
		card.Receive(0, frames.NewDatagram(frames.Access(wire.KindRegWrite, addr, value)).Bytes())
		reply, _, ok := card.Send(nil)
		if !ok {
			return fmt.Errorf("register %#x: no reply", addr)
		}
		if code := model.ParseHeader(reply[42:]).Code; code != wire.CodeDone {
			return fmt.Errorf("register %#x: %v", addr, code)
		}
		return nil
	}
	type access struct {
		addr  uint32
		value uint64
	}
	all := []access{{wire.RegOwner, 1}, {wire.RegJobToken, 1}, {wire.RegLease, wire.MaxLease}}
	offers := r.Offers()
	for rank, o := range offers {
		ip, next := o.Address.IP.As4(), r.Next(rank)
		mac := binary.BigEndian.Uint64(append([]byte{0, byte(rank)}, o.Address.MAC[:]...)) // with the Ethernet port
		all = append(all,
			access{wire.MemberAddr(wire.RegMemberAddress, rank), 4791<<32 | uint64(binary.BigEndian.Uint32(ip[:]))},
			access{wire.MemberAddr(wire.RegMemberMAC, rank), mac},
			access{wire.ConnectionAddr(rank), uint64(offers[next].TakeQPN) | uint64(o.FirstPSN)<<wire.ConnectionPSNShift | uint64(next)<<wire.ConnectionPortShift})
	}
	all = append(all,
		access{wire.RegJobPorts, 1<<len(offers) - 1}, access{wire.RegJobChunk, uint64(roceJob.MTU / 4)},
		access{wire.RegJobWindow, uint64(roceJob.Window)}, access{wire.RegJobDeadline, 0}, access{wire.RegJobCommit, 1 << 32})
	for _, a := range all {
		if err := write(a.addr, a.value); err != nil {
			return err
		}
	}
	return nil
}
