// Cases at the end of a link and the start of the next: halts, new claims, bus resets,
// suspension.
#pragma once

#include "device/requests.h"
#include "device/stream.h"

namespace {

void halts(Device &d) {
    d.attach();
    bool open = false;
    d.takes = [&] { return open; };
    Bytes bytes = pattern(3 * PACKET - PACKET / 16, 1), packet;
    // One packet passes in each direction, so the toggles are DATA1; one waits in each direction.
    same(d.host.out(d.out, usb::OUT, bytes.data(), PACKET), Result::DONE, "OUT");
    offer(d, bytes);
    check(next(d, packet), "IN");
    d.host.pass(1000);
    auto halted = [&](int endpoint, auto &&does) {
        d.set(0x02, 3, 0, endpoint);
        status(d, 0x82, endpoint, 1, "status of an endpoint that is halted");
        status(d, 0x82, endpoint ^ 0x80, 0, "status of the other one");
        does();
        d.set(0x02, 1, 0, endpoint);
        status(d, 0x82, endpoint, 0, "status of an endpoint whose halt is cleared");
    };
    halted(0x01, [&] {
        for (bool ping : {false, true, false}) {
            d.out.ping = ping;
            same(d.host.out(d.out, usb::OUT, bytes.data() + PACKET, PACKET), Result::STALLED, "OUT, halted");
        }
        same(d.host.in(d.in, packet), Result::DONE, "IN while OUT is halted");
        same(packet, Bytes(bytes.begin() + PACKET, bytes.begin() + 2 * PACKET), "IN while OUT is halted");
    });
    d.out = {d.address, 1};
    halted(0x81, [&] {
        for (int i = 0; i < 3; i++) same(d.host.in(d.in, packet), Result::STALLED, "IN, halted");
        same(d.host.out(d.out, usb::OUT, bytes.data() + PACKET, PACKET / 5), Result::DONE, "OUT while IN is halted");
    });
    d.in = {d.address, 1};
    // The stream continues, with DATA0.
    Bytes got;
    packets(d, got);
    same(got, Bytes(bytes.begin() + 2 * PACKET, bytes.end()), "IN after the halt");
    open = true;
    send(d, Bytes(bytes.begin() + PACKET + PACKET / 5, bytes.end()), PACKET);
    d.host.pass(3000);
    same(d.from_host, bytes, "what the card got");
    same(d.link_falls, uint64_t(0), "halts leave the link alone");
    // A new claim clears the halts.
    d.set(0x02, 3, 0, 0x01);
    d.set(0x02, 3, 0, 0x81);
    d.claim();
    status(d, 0x82, 0x01, 0, "status after claiming again");
    status(d, 0x82, 0x81, 0, "status after claiming again");
    // Clearing an endpoint that is not halted also resets its toggle (USB 9.4.5).
    same(d.host.out(d.out, usb::OUT, bytes.data(), 8), Result::DONE, "OUT");
    d.set(0x02, 1, 0, 0x01);
    d.out.toggle = false;
    same(d.host.out(d.out, usb::OUT, bytes.data(), 8), Result::DONE, "OUT");
    d.host.pass(100);
    same(d.from_host.size(), bytes.size() + 16, "bytes after the toggle was put back");
}

// Leaves the device busy: the card has not taken some bytes, and only the first packet of a burst
// was sent.
void in_the_middle(Device &d) {
    d.takes = [&d, most = d.from_host.size() + PACKET / 2] { return d.from_host.size() < most; };
    Bytes bytes = pattern(4 * PACKET - PACKET / 16, 77), packet;
    same(d.host.out(d.out, usb::OUT, bytes.data(), PACKET), Result::DONE, "OUT");
    same(d.host.out(d.out, usb::OUT, bytes.data(), PACKET), Result::DONE, "OUT");
    same(d.host.out(d.out, usb::OUT, bytes.data(), PACKET), Result::DONE, "OUT");
    offer(d, bytes);
    check(next(d, packet), "IN");
    same(packet.size(), PACKET, "the first packet of a burst");
    d.set(0x02, 3, 0, 0x81);
    d.may_drop = true;
}

// Checks that a link carries nothing from before.
void fresh(Device &d, const std::string &what) {
    d.takes = [] { return true; };
    d.from_host.clear();
    Bytes packet, bytes = pattern(PACKET + PACKET / 3, 5);
    for (int i = 0; i < 20; i++) same(d.host.in(d.in, packet), Result::NAKED, what + ": IN");
    d.host.pass(2000);
    same(d.from_host.size(), size_t(0), what + ": bytes of the last host");
    status(d, 0x82, 0x01, 0, what + ": halt of OUT");
    status(d, 0x82, 0x81, 0, what + ": halt of IN");
    send(d, bytes, PACKET);
    offer(d, bytes);
    Bytes got;
    packets(d, got);
    same(got, bytes, what + ": IN");
    same(d.from_host, bytes, what + ": OUT");
}

// Any end of the link leaves nothing behind, and the toggles at DATA0.
void claims(Device &d) {
    d.attach();
    uint64_t falls = 0;
    for (int round = 0; round < 2; round++) {
        for (int clear_after : {0, 1, 5, 300, 20'000}) {
            d.clear_after = clear_after;
            in_the_middle(d);
            d.claim();
            same(d.link_falls, ++falls, "times that the link went down");
            check(d.link_up(), "the status stage comes when the link is up");
            fresh(d, "claimed again");
        }
        // Twice in succession, before the far side has seen the link up.
        d.clear_after = 3000;
        in_the_middle(d);
        for (int i = 0; i < 2; i++) d.claim();
        falls += 2;
        same(d.link_falls, falls, "times that the link went down");
        fresh(d, "claimed twice");
        d.clear_after = 20;
        in_the_middle(d);
        d.set(0x01, 11, 0, 0);
        d.host.pass(1000);
        check(!d.link_up(), "the link is down in alternate setting 0");
        d.claim();
        same(d.link_falls, ++falls, "times that the link went down");
        fresh(d, "given up and claimed");
        in_the_middle(d);
        d.set(0x00, 9, 1, 0);
        d.claim();
        same(d.link_falls, ++falls, "times that the link went down");
        fresh(d, "configured and claimed");
    }
}

// Until the far side has dropped its bytes, the device answers NAK at both endpoints and in the
// status stage.
void waiting(Device &d) {
    d.attach();
    d.clear_after = 30'000;
    d.may_drop = true;
    offer(d, pattern(100, 1));
    d.host.pass(1000);
    Pipe pipe{d.address, 0};
    Bytes request = usb::Setup{0x01, 11, 1, 0, 0}.bytes(), data = pattern(PACKET, 2), packet;
    same(d.host.out(pipe, usb::SETUP, request.data(), 8), Result::DONE, "SETUP");
    pipe.toggle = true;
    d.in = d.out = {d.address, 1};
    uint64_t begin = d.host.now();
    int rounds = 0;
    for (bool was_up = true;; rounds++) {
        Result r = d.host.in(pipe, packet);
        if (r == Result::DONE) break;
        same(r, Result::NAKED, "status stage");
        check(!d.link_up() || was_up, "the link is up, and the status stage is answered NAK");
        was_up = d.link_up();
        d.out.ping = rounds % 2;
        Result out = d.host.out(d.out, usb::OUT, data.data(), PACKET), in = d.host.in(d.in, packet);
        if (d.link_up() && !was_up) continue;  // the link has just come up
        same(out, Result::NAKED, "OUT before the link is up");
        same(in, Result::NAKED, "IN before the link is up");
        check(d.host.now() < begin + 200'000, "the link does not come up");
    }
    check(d.link_up() && d.host.now() > begin + 30'000, "the link waited for the far side");
    check(rounds > (HIGH_SPEED ? 20 : 5), "few rounds");
    d.clear_after = 20;
    d.claim();
    fresh(d, "after the wait");
    // A host that abandons the request, and another host that follows, do not change this.
    d.clear_after = 3000;
    in_the_middle(d);
    for (int i = 0; i < 5; i++)
        same(d.host.out(pipe = {d.address, 0}, usb::SETUP, request.data(), 8), Result::DONE, "SETUP");
    Bytes got;
    same(d.control(0xc0, 1, 0, 0, 104, got), Result::DONE, "Identify while the link is to come up");
    same(got, ident, "Identify while the link is to come up");
    d.claim();
    fresh(d, "after requests that were given up");
}

// A bus reset clears all state; the next host starts like the first one.
void bus_reset(Device &d) {
    d.attach();
    for (int i = 0; i < 2; i++) {
        d.host.reset_us = i ? 1000 : 10'000;
        in_the_middle(d);
        uint64_t falls = d.link_falls;
        if (i) {  // also in the middle of a packet
            Bytes cut = usb::data_packet(d.out.toggle ? usb::DATA1 : usb::DATA0, pattern(PACKET, 1).data(), PACKET);
            d.host.send(usb::token_packet(usb::OUT, d.address | 1 << 7));
            d.host.gap();
            d.host.send(Bytes(cut.begin(), cut.begin() + PACKET / 3));
        }
        d.host.reset();
        check(!d.configured() && !d.link_up(), "nothing is configured after a reset");
        same(d.link_falls, falls + 1, "times that the link went down");
        Bytes got;
        same(d.control(0x80, 8, 0, 0, 1, got), Result::FAILED, "the old address");
        d.address = 0;
        same(d.control(0x80, 8, 0, 0, 1, got), Result::DONE, "address 0");
        same(got, {0}, "configuration after a reset");
        d.attach();
        fresh(d, "after a reset");
    }
}

// A bus without frames is suspended; the device keeps its state.
void suspend(Device &d) {
    d.attach();
    check(!d.suspended(), "the bus is not suspended");
    d.host.wait(60 * 3400);
    check(d.suspended(), "the bus is suspended after 3 ms");
    check(d.link_up(), "the link stays up");
    d.phy.lines = usb::Lines::K;
    d.host.wait(60 * 1000);
    d.phy.lines = usb::Lines::SE0;
    d.host.wait(80);
    d.phy.lines = usb::Lines::IDLE;
    d.host.wait(100);
    check(!d.suspended(), "the bus is not suspended after the host has resumed");
    same(d.phy.terminated(), HIGH_SPEED, "whether the device is at high speed after the host has resumed");
    fresh(d, "resumed");
}

}  // namespace
