// Cases of the bulk endpoints, which carry a card's stream: packets of all sizes, bursts,
// back-pressure, rate.
#pragma once

#include "device/judge.h"

namespace {

// Sends all bytes in packets of this size.
void send(Device &d, const Bytes &bytes, size_t packet) {
    for (size_t at = 0; at < bytes.size();) {
        size_t n = std::min(packet, bytes.size() - at);
        Result r = d.host.out(d.out, usb::OUT, bytes.data() + at, n);
        if (r == Result::DONE)
            at += n;
        else
            check(r == Result::NAKED || r == Result::FAILED, "OUT is stalled");
    }
}

// Receives the device's next packet within a number of cycles.
bool next(Device &d, Bytes &packet, uint64_t cycles = 4000) {
    for (uint64_t end = d.host.now() + cycles; d.host.now() < end;) {
        Result r = d.host.in(d.in, packet);
        if (r == Result::DONE) return true;
        check(r != Result::STALLED, "IN is stalled");
    }
    return false;
}

// Receives packets until the device has no more; returns their sizes, and their bytes in `bytes`.
std::vector<size_t> packets(Device &d, Bytes &bytes) {
    std::vector<size_t> sizes;
    for (Bytes packet; next(d, packet);) {
        sizes.push_back(packet.size());
        bytes.insert(bytes.end(), packet.begin(), packet.end());
    }
    return sizes;
}

std::string list(const std::vector<size_t> &sizes) {
    std::string all;
    for (size_t n : sizes) all += std::to_string(n) + " ";
    return all;
}

// Packets of all sizes form one stream without borders.
void out_sizes(Device &d) {
    d.attach();
    Bytes all;
    for (size_t n : {size_t(1), size_t(0), size_t(2), PACKET - 1, PACKET, size_t(1), size_t(0), size_t(0), PACKET / 8,
                     PACKET, PACKET, PACKET, PACKET, PACKET, PACKET / 2 + 3, size_t(0), size_t(7)}) {
        Bytes bytes = pattern(n, n + all.size());
        Result r;
        do r = d.host.out(d.out, usb::OUT, bytes.data(), n);
        while (r == Result::NAKED);
        same(r, Result::DONE, "OUT");
        all.insert(all.end(), bytes.begin(), bytes.end());
    }
    d.host.pass(3000);
    same(d.from_host, all, "what the card got");
    // A packet longer than the endpoint's maximum is ignored, without an answer.
    Bytes longer = pattern(PACKET + 1, 1);
    same(d.host.out(d.out, usb::OUT, longer.data(), PACKET + 1), Result::FAILED, "OUT of a byte too many");
    d.out.ping = false;
    d.host.pass(3000);
    same(d.from_host, all, "what the card got of a packet that is too long");
    send(d, longer, PACKET);
    d.host.pass(3000);
    all.insert(all.end(), longer.begin(), longer.end());
    same(d.from_host, all, "what the card got after it");
}

// The ends of bursts, to the cycle and to the byte.
void bursts(Device &d) {
    d.attach();
    for (size_t n : {size_t(1), size_t(2), PACKET - 1, PACKET, PACKET + 1, 2 * PACKET - 1, 2 * PACKET, 2 * PACKET + 1,
                     10 * PACKET, 10 * PACKET + 1}) {
        Bytes bytes = pattern(n, n), got;
        offer(d, bytes);
        std::vector<size_t> want(n / PACKET, PACKET);
        want.push_back(n % PACKET);
        std::vector<size_t> sizes = packets(d, got);
        check(sizes == want, "a burst of " + std::to_string(n) + " bytes came as " + list(sizes));
        same(got, bytes, "the bytes of a burst");
    }
    // Bytes with this many idle cycles between them: from 32 on, each is a separate burst.
    for (int silence : {1, 2, 16, 30, 31, 32, 33, 40}) {
        Bytes bytes = pattern(10, silence), got;
        int since = 1000;
        size_t left = bytes.size();
        d.offers = [&] {
            bool now = d.to_host.size() != left || since >= silence;
            since = now ? 0 : since + 1;
            if (now) left = d.to_host.size() - 1;
            return now;
        };
        left = bytes.size();
        offer(d, bytes);
        std::vector<size_t> sizes = packets(d, got);
        same(got, bytes, "the bytes of slow bursts");
        check(sizes == (silence < 32 ? std::vector<size_t>{10} : std::vector<size_t>(10, 1)),
              "bytes with " + std::to_string(silence) + " silent cycles between them came as " + list(sizes));
        d.offers = [] { return true; };
    }
    // A burst also ends while the host sends no IN: one or two packets wait, an idle time, then more bytes.
    for (size_t n : {PACKET / 5, PACKET, PACKET + PACKET / 3, 2 * PACKET}) {
        Bytes bytes = pattern(n + 50, n), got;
        offer(d, Bytes(bytes.begin(), bytes.begin() + n));
        d.host.pass(3000);
        offer(d, Bytes(bytes.begin() + n, bytes.end()));
        d.host.pass(3000);
        std::vector<size_t> want(n / PACKET, PACKET), sizes = packets(d, got);
        want.push_back(n % PACKET);
        want.push_back(50);
        check(sizes == want, "bursts that waited came as " + list(sizes));
        same(got, bytes, "the bytes of bursts that waited");
    }
    same(d.traffic, d.moved, "cycles with traffic");
}

// A card that takes no bytes: the device takes whole packets while it has room, then answers NAK.
void pressure(Device &d) {
    d.attach();
    bool open = false;
    d.takes = [&] { return open; };
    Bytes bytes = pattern(8192, 3);
    // The device holds 2,048 bytes, one of them at the stream port. So it has room for another
    // packet only when all but one of a packet's bytes are taken. It answers NYET to the packet
    // that takes the room.
    const size_t HELD = 2048;
    for (size_t at = 0; at < HELD; at += PACKET) {
        d.out.ping = false;
        same(d.host.out(d.out, usb::OUT, bytes.data() + at, PACKET), Result::DONE, "OUT with room");
        same(d.out.ping, HIGH_SPEED && at + PACKET == HELD, "NYET to the packet at " + std::to_string(at));
    }
    for (int i = 0; i < 20; i++)
        same(d.host.out(d.out, usb::OUT, bytes.data() + HELD, PACKET), Result::NAKED, "PING without room");
    d.out.ping = false;
    for (int i = 0; i < 20; i++, d.out.ping = false)
        same(d.host.out(d.out, usb::OUT, bytes.data() + HELD, PACKET), Result::NAKED, "OUT without room");
    same(d.from_host.size(), size_t(0), "bytes that a card got that takes none");
    auto take = [&](size_t n) {
        size_t end = d.from_host.size() + n;
        d.takes = [&d, end] { return d.from_host.size() < end; };
        d.host.pass(2 * n + 100);
        same(d.from_host.size(), end, "bytes taken");
    };
    take(PACKET - 2);
    d.out.ping = true;
    same(d.host.out(d.out, usb::OUT, bytes.data() + HELD, PACKET), Result::NAKED, "PING with one byte too little");
    take(1);
    same(d.host.out(d.out, usb::OUT, bytes.data() + HELD, PACKET), Result::DONE, "OUT with room again");
    if (HIGH_SPEED) same(d.out.ping, true, "NYET to the packet that took the room");
    d.takes = [] { return true; };
    d.host.pass(6000);
    send(d, Bytes(bytes.begin() + HELD + PACKET, bytes.end()), PACKET);
    d.host.pass(6000);
    same(d.from_host, bytes, "what the card got");
}

// Bytes in both directions at once, of any sizes and with any pauses, echoed by the card.
void echo(Device &d) {
    d.attach();
    d.echo = true;
    std::mt19937 random(7);
    d.takes = [&] { return random() % 8 != 0; };
    d.offers = [&] { return random() % 16 != 0; };
    Bytes bytes = pattern(117 * PACKET, 5), got;
    for (size_t at = 0, n = 0; got.size() < bytes.size();) {
        if (n == 0) n = std::min<size_t>(bytes.size() - at, random() % 3 ? PACKET : random() % (PACKET + 1));
        if (n) {
            Result r = d.host.out(d.out, usb::OUT, bytes.data() + at, n);
            check(r == Result::DONE || r == Result::NAKED, "OUT fails");
            if (r == Result::DONE) at += n, n = 0;
        }
        Bytes packet;
        Result r = d.host.in(d.in, packet);
        check(r == Result::DONE || r == Result::NAKED, "IN fails");
        got.insert(got.end(), packet.begin(), packet.end());
        check(d.host.now() < 10'000'000, "the echo does not come back");
    }
    same(got, bytes, "the echo");
    check(!d.broken_offer, "a byte was taken back before the card took it");
}

// The bus's full rate with a host that never waits: 13 packets in a microframe (USB, table 5-10),
// or 19 in a frame at full speed (table 5-9).
void rate(Device &d) {
    d.attach();
    const int FRAMES = 20, MOST = HIGH_SPEED ? 13 : 19;
    Bytes bytes = pattern(PACKET, 3), packet;
    // Bytes without long runs of ones, so that no bits are stuffed.
    for (uint8_t &b : bytes) b &= 0x5b;
    auto frames = [&](auto transaction) {
        uint64_t frame = d.host.frames();
        while (d.host.frames() == frame) d.host.pass(10);
        frame = d.host.frames();
        std::vector<int> counts(FRAMES);
        for (;;) {
            bool done = transaction();
            uint64_t now = d.host.frames() - frame;
            if (now >= FRAMES) return counts;
            check(done, "a transaction is answered NAK at full rate");
            counts[now]++;
        }
    };
    for (int count : frames([&] { return d.host.out(d.out, usb::OUT, bytes.data(), PACKET) == Result::DONE; })) {
        same(count, MOST, "OUT packets in a frame");
    }
    for (int i = 0; i < (MOST + 1) * FRAMES + 40; i++) offer(d, bytes);
    d.host.pass(1500);
    for (int count : frames([&] { return d.host.in(d.in, packet) == Result::DONE; }))
        same(count, MOST, "IN packets in a frame");
    printf("%.3f MB/s each way; ", MOST * PACKET * (HIGH_SPEED ? 8 : 1) / 1e3);
    printf("slowest answer: %llu cycles\n", (unsigned long long)d.host.slowest_answer);
}

}  // namespace
