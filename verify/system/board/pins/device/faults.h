// Cases with damaged and lost packets, and with packets that no host sends.
#pragma once

#include "device/stream.h"

namespace {

// Any packet may be damaged or lost; the stream neither loses nor repeats a byte.
void faults(Device &d) {
    d.attach();
    d.echo = true;
    std::map<Fault, int> happened;
    std::mt19937 random(11);
    d.host.fault = [&] {
        Fault f = random() % 3 ? Fault::NONE : std::array{Fault::TOKEN, Fault::DATA, Fault::HANDSHAKE}[random() % 3];
        happened[f]++;
        return f;
    };
    Bytes bytes = pattern(488 * PACKET, 9), got;
    for (size_t at = 0, n = 0; got.size() < bytes.size();) {
        if (n == 0) n = std::min<size_t>(bytes.size() - at, random() % 3 ? PACKET : random() % (PACKET + 1));
        if (n && d.host.out(d.out, usb::OUT, bytes.data() + at, n) == Result::DONE) at += n, n = 0;
        Bytes packet;
        d.host.in(d.in, packet);
        got.insert(got.end(), packet.begin(), packet.end());
        check(d.host.now() < 20'000'000, "the echo does not come back");
    }
    same(got, bytes, "the echo");
    for (Fault f : {Fault::TOKEN, Fault::DATA, Fault::HANDSHAKE}) check(happened[f] > 100, "too few faults");
    // Requests succeed, too.
    int failed = 0;
    for (int i = 0; i < 100; i++) {
        Bytes got;
        if (d.control(0xc0, 1, 0, 0, 104, got) == Result::DONE)
            same(got, ident, "Identify");
        else
            failed++;
    }
    check(failed < 50, "most requests fail");
}

// Sends a token with a wrong bit, and data after it. The device must not answer.
void behind_damaged(Device &d, usb::Pid pid, uint8_t endpoint, bool toggle, const Bytes &data) {
    d.host.gap();
    Bytes token = usb::token_packet(pid, d.address | endpoint << 7);
    token[2] ^= 0x80;
    d.host.send(token);
    d.host.gap();
    d.host.send(usb::data_packet(toggle ? usb::DATA1 : usb::DATA0, data.data(), data.size()));
    check(d.host.receive().empty(), "the device answers data behind a damaged token");
}

// Each fault alone, and the device's reaction.
void repeats(Device &d) {
    d.attach();
    auto once = [&](Fault f) {
        bool done = false;
        d.host.fault = [f, done]() mutable { return std::exchange(done, true) ? Fault::NONE : f; };
    };
    Bytes bytes = pattern(PACKET, 1), packet;
    Bytes all;
    for (Fault f : {Fault::TOKEN, Fault::DATA, Fault::HANDSHAKE}) {
        // OUT: the host has seen no handshake, and repeats with the same toggle.
        d.out.ping = false;
        once(f);
        same(d.host.out(d.out, usb::OUT, bytes.data(), PACKET), Result::FAILED, "OUT with a fault");
        d.out.ping = false;
        same(d.host.out(d.out, usb::OUT, bytes.data(), PACKET), Result::DONE, "OUT repeated");
        all.insert(all.end(), bytes.begin(), bytes.end());
        d.host.pass(1000);
        same(d.from_host, all, "the card has it once");
        // IN: the device repeats with the same toggle.
        offer(d, bytes);
        d.host.pass(1000);
        bool toggle = d.in.toggle;
        once(f);
        Result r = d.host.in(d.in, packet);
        if (f == Fault::HANDSHAKE) {
            same(r, Result::DONE, "IN whose ACK is lost");
            same(packet, bytes, "IN whose ACK is lost");
            same(d.host.in(d.in, packet), Result::FAILED, "IN that comes again");
            same(d.in.toggle, !toggle, "toggle of what comes again");
        } else {
            same(r, Result::FAILED, "IN with a fault");
            same(d.host.in(d.in, packet), Result::DONE, "IN repeated");
            same(packet, bytes, "IN repeated");
        }
        same(d.host.in(d.in, packet), Result::DONE, "the burst's end");
        same(packet.size(), size_t(0), "the burst's end");
        same(d.host.in(d.in, packet), Result::NAKED, "IN when there is nothing");
    }
    // Data after a damaged token belongs to no endpoint, even if the token before it named this one. The
    // sizes reach what may follow that token, and more.
    d.host.fault = [] { return Fault::NONE; };
    for (size_t n : {size_t(0), size_t(1), PACKET / 5, PACKET - 1, PACKET}) {
        same(d.host.out(d.out, usb::OUT, bytes.data(), 1), Result::DONE, "OUT");
        all.push_back(bytes[0]);
        behind_damaged(d, usb::OUT, d.out.endpoint, d.out.toggle, Bytes(bytes.begin(), bytes.begin() + n));
        d.host.pass(1000);
        same(d.from_host, all, "and takes nothing of it");
    }
    // Nor is it a request, after a SETUP whose data was lost.
    d.host.gap();
    d.host.send(usb::token_packet(usb::SETUP, d.address));
    d.host.pass(200);
    behind_damaged(d, usb::SETUP, 0, false, usb::Setup{0x01, 11, 0, 0, 0}.bytes());
    d.host.pass(200);
    check(d.link_up(), "a request behind a damaged token is carried out");
    // The device ignores a truncated data packet, and takes the next one.
    for (size_t n : {size_t(0), size_t(1), size_t(2), size_t(3), PACKET / 5, PACKET}) {
        d.host.gap();
        d.host.send(usb::token_packet(usb::OUT, d.address | 1 << 7));
        d.host.gap();
        Bytes cut = usb::data_packet(d.out.toggle ? usb::DATA1 : usb::DATA0, bytes.data(), PACKET);
        cut.resize(1 + n);
        d.host.send(cut);
        check(d.host.receive().empty(), "the device answers data that broke off");
        d.out.ping = false;
        same(d.host.out(d.out, usb::OUT, bytes.data(), n), Result::DONE, "OUT repeated");
        all.insert(all.end(), bytes.begin(), bytes.begin() + std::min(n, PACKET));
        d.host.pass(1000);
        same(d.from_host, all, "the card has it once");
    }
    // An ACK for another device's packet confirms nothing.
    offer(d, {1, 2, 3});
    d.host.pass(200);
    d.host.gap();
    d.host.send(usb::token_packet(usb::IN, d.address | 1 << 7));
    check(d.host.receive().size() == 6, "the packet comes");
    d.host.wait(120);
    d.host.send(usb::token_packet(usb::IN, 99 | 1 << 7));
    d.host.wait(50);
    d.host.send({usb::pid_byte(usb::ACK)});
    same(d.host.in(d.in, packet), Result::DONE, "the packet comes again");
    same(packet, {1, 2, 3}, "the packet comes again");
}

// Packets that no host sends get no answer, and leave the device's state unchanged.
void garbage(Device &d) {
    d.attach();
    std::mt19937 random(3);
    offer(d, pattern(100, 1));
    d.host.pass(1000);
    for (int i = 0; i < 3000; i++) {
        Bytes packet = pattern(1 + random() % (random() % 20 ? 8 : PACKET + PACKET / 3), random());
        if (random() % 2) packet[0] = usb::pid_byte(usb::Pid(random() % 16));
        d.host.gap();
        d.host.send(packet);
        check(d.host.receive().empty(), "the device answers " + text(packet));
        if (random() % 16 == 0) d.host.pass(100);
    }
    Bytes got;
    packets(d, got);
    same(got, pattern(100, 1), "what waited");
    same(d.from_host, {}, "what the card got");
    same(d.link_falls, uint64_t(0), "times that the link went down");
    fresh(d, "after garbage");
}

}  // namespace
