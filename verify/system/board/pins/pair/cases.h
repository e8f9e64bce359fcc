// Cases for bits on two lines, in the terms of ../device_bench.cpp.
#pragma once

namespace {

using Flaw = usb::Pair::Flaw;

// Hosts with the largest clock error that USB allows (7.1.11), and the largest jitter behind five
// hubs (7.1.15: 18.5 ns from one edge to the next).
void clocks(Device &d) {
    const double JITTER = 18.5 / 2 * 60 / 1000;
    d.echo = true;
    for (double off : {0.0, 0.0025, -0.0025}) {
        for (double jitter : {0.0, JITTER}) {
            d.phy.bit = 5 * (1 + off);
            d.phy.jitter = jitter;
            std::string what = "a clock off by " + std::to_string(off) + ", edges by " + std::to_string(jitter);
            d.attach();
            d.may_drop = true;
            d.to_host.clear(), d.from_host.clear();
            // All kinds of bits: random, none stuffed, as many stuffed as possible, an edge in
            // every bit.
            Bytes bytes = pattern(40 * PACKET, 7), got;
            for (uint8_t same : {0x55, 0xff, 0x00, 0x7e, 0xfc}) bytes.insert(bytes.end(), 2 * PACKET, same);
            for (size_t at = 0; got.size() < bytes.size();) {
                size_t n = std::min(PACKET, bytes.size() - at);
                Result r = n ? d.host.out(d.out, usb::OUT, bytes.data() + at, n) : Result::DONE;
                check(r == Result::DONE || r == Result::NAKED, what + ": OUT fails");
                if (r == Result::DONE) at += n;
                Bytes packet;
                r = d.host.in(d.in, packet);
                check(r == Result::DONE || r == Result::NAKED, what + ": IN fails");
                got.insert(got.end(), packet.begin(), packet.end());
            }
            same(d.from_host, bytes, what);
            same(got, bytes, what);
        }
    }
}

// A device answers within 2 to 6.5 bit times of the end of a packet (7.1.18.1). Pair checks that
// in every case; this case checks Pair's measurement.
void answers(Device &d) {
    d.attach();
    Bytes none;
    for (int i = 0; i < 100; i++) same(d.host.in(d.in, none), Result::NAKED, "IN");
    printf("answers after %.2f to %.2f bit times; ", d.phy.fastest / 5, d.phy.slowest / 5);
    check(d.phy.fastest >= 10 && d.phy.slowest <= 32.5 && d.phy.slowest > d.phy.fastest, "answers are measured");
}

// The device ignores packets with wrong stuffing, and packets that end in the middle of a byte.
void flaws(Device &d) {
    d.attach();
    Bytes bytes(PACKET, 0xff), all, packet;
    auto token = [&](usb::Pid pid) { return usb::token_packet(pid, d.address | 1 << 7); };
    auto data = [&] { return usb::data_packet(d.out.toggle ? usb::DATA1 : usb::DATA0, bytes.data(), PACKET); };
    for (Flaw flaw : {Flaw::STUFFING, Flaw::CUT}) {
        // Data: no answer; then the device takes the packet without the flaw.
        d.host.gap();
        d.host.send(token(usb::OUT));
        d.host.gap();
        d.phy.flaw = flaw;
        d.host.send(data());
        check(d.host.receive().empty(), "the device answers data with a flaw");
        same(d.host.out(d.out, usb::OUT, bytes.data(), PACKET), Result::DONE, "OUT repeated");
        all.insert(all.end(), bytes.begin(), bytes.end());
        d.host.pass(1000);
        same(d.from_host, all, "the card has it once");
    }
    // A token with a truncated last byte.
    offer(d, {1, 2, 3});
    d.host.pass(1000);
    d.host.gap();
    d.phy.flaw = Flaw::CUT;
    d.host.send(token(usb::IN));
    check(d.host.receive().empty(), "the device answers a token that is cut");
    // A truncated ACK confirms nothing: the device repeats the packet.
    d.host.gap();
    d.host.send(token(usb::IN));
    same(d.host.receive().size(), size_t(6), "the packet");
    d.host.gap();
    d.phy.flaw = Flaw::CUT;
    d.host.send({usb::pid_byte(usb::ACK)});
    same(d.host.in(d.in, packet), Result::DONE, "IN again");
    same(packet, {1, 2, 3}, "IN again");
    // An ACK followed by a flaw confirms nothing, either.
    offer(d, {4, 5, 6, 7});
    d.host.pass(1000);
    d.host.gap();
    d.host.send(token(usb::IN));
    same(d.host.receive().size(), size_t(7), "the packet");
    d.host.gap();
    d.phy.flaw = Flaw::STUFFING;
    d.host.send({usb::pid_byte(usb::ACK), 0xff});
    same(d.host.in(d.in, packet), Result::DONE, "IN again");
    same(packet, {4, 5, 6, 7}, "IN again");
    // A token with seven ones in a row. All other bits are right, as are its CRC and its length.
    Bytes stuffed;
    for (int address = 1; stuffed.empty(); address++) {
        stuffed = usb::token_packet(usb::IN, address | 1 << 7);
        int ones = 0, most = 0;
        for (int i = 8; i < 24; i++) most = std::max(most, ones = stuffed[i / 8] >> i % 8 & 1 ? ones + 1 : 0);
        if (most < 6)
            stuffed.clear();
        else
            d.set(0x00, 5, address, 0), d.address = address;
    }
    d.host.pass(15'000);
    d.in.address = d.out.address = d.address;
    d.host.gap();
    d.phy.flaw = Flaw::STUFFING;
    d.host.send(stuffed);
    check(d.host.receive().empty(), "the device answers a token that is stuffed wrongly");
    d.host.gap();
    d.host.send(stuffed);
    same(d.host.receive(), {usb::pid_byte(usb::NAK)}, "the same token, stuffed rightly");
}

// No flaw: an extra bit before the end, which hubs add, after every kind of packet.
void dribble(Device &d) {
    d.attach();
    Bytes all;
    for (uint8_t last : {0x00, 0x3f, 0x7f, 0xff}) {
        Bytes bytes = pattern(PACKET / 2, last), got;
        bytes.push_back(last);
        d.host.gap();
        d.phy.flaw = Flaw::DRIBBLE;
        d.host.send(usb::token_packet(usb::OUT, d.address | 1 << 7));
        d.host.gap();
        d.phy.flaw = Flaw::DRIBBLE;
        d.host.send(usb::data_packet(d.out.toggle ? usb::DATA1 : usb::DATA0, bytes.data(), bytes.size()));
        d.out.toggle = !d.out.toggle;
        same(d.host.receive(), {usb::pid_byte(usb::ACK)}, "the answer to data behind which there is a bit too many");
        all.insert(all.end(), bytes.begin(), bytes.end());
        offer(d, bytes);
        d.host.pass(1000);
        same(d.from_host, all, "what the card got");
        d.host.gap();
        d.phy.flaw = Flaw::DRIBBLE;
        d.host.send(usb::token_packet(usb::IN, d.address | 1 << 7));
        same(d.host.receive().size(), bytes.size() + 3, "the packet");
        d.host.gap();
        d.phy.flaw = Flaw::DRIBBLE;
        d.host.send({usb::pid_byte(usb::ACK)});
        d.in.toggle = !d.in.toggle;
        same(d.host.in(d.in, got), Result::NAKED, "IN after what was acknowledged");
    }
}

// A pulled cable is a silent bus, since there are no pins for VBUS. The link goes down when the
// next host resets the bus.
void unplugged(Device &d) {
    d.attach();
    in_the_middle(d);
    d.phy.vbus = false;
    d.host.wait(400'000);
    check(d.suspended() && d.link_up(), "a device that is unplugged is suspended");
    d.phy.vbus = true;
    d.host.connect();
    d.attach();
    same(d.link_falls, uint64_t(1), "times that the link went down");
    fresh(d, "plugged in again");
}

const Cases OWN = {
    {"clocks", clocks}, {"answers", answers}, {"flaws", flaws}, {"dribble", dribble}, {"unplugged", unplugged},
};

}  // namespace
