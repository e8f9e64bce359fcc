// What a host finds at the pins of a card's USB device: each case is a part of the
// contract, SPEC.md, section 9. The numbers here are written out from there and from
// the USB specification, and read from no other file. It is built for each kind of pins:
// what they are, and the cases that are theirs alone, is in gateware.h and cases.h of a
// folder, ulpi or pair.
//
//   device_bench HASH SERIAL IDENT CASE...    HASH: 16 hex digits; IDENT: 208
//   device_bench --list

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>

#include "device.h"

namespace {

using usb::Bytes;
using usb::Device;
using usb::Fault;
using usb::Pipe;
using usb::Result;

constexpr size_t PACKET = usb::PACKET;
constexpr bool HIGH_SPEED = PACKET == 512;

// What the device was written for.
std::string config_hash, serial;
Bytes ident;

struct Failure : std::runtime_error {
    using std::runtime_error::runtime_error;
};

std::string text(const Bytes &bytes) {
    std::string all;
    for (size_t i = 0; i < bytes.size() && i < 80; i++) {
        char byte[4];
        snprintf(byte, sizeof byte, "%02x ", bytes[i]);
        all += byte;
    }
    return all + "(" + std::to_string(bytes.size()) + ")";
}

void check(bool holds, const std::string &what) {
    if (!holds) throw Failure(what);
}

template <typename T>
void same(T got, T want, const std::string &what) {
    if (got != want) throw Failure(what + ": " + std::to_string(got) + ", not " + std::to_string(want));
}

void same(const Bytes &got, const Bytes &want, const std::string &what) {
    if (got != want) throw Failure(what + ":\n  got  " + text(got) + "\n  want " + text(want));
}

void same(Result got, Result want, const std::string &what) {
    static const char *names[] = {"done", "NAK", "NYET", "STALL", "no answer"};
    if (got != want) throw Failure(what + ": " + names[int(got)] + ", not " + names[int(want)]);
}

Bytes hex(const char *digits) {
    Bytes bytes;
    for (; *digits; digits++) {
        if (*digits == ' ') continue;
        char pair[3] = {digits[0], digits[1], 0};
        bytes.push_back(strtoul(pair, nullptr, 16));
        digits++;
    }
    return bytes;
}

// A string descriptor: UTF-16, lowest byte first.
Bytes string_descriptor(const std::string &letters) {
    Bytes bytes{uint8_t(2 + 2 * letters.size()), 3};
    for (char c : letters) {
        bytes.push_back(c);
        bytes.push_back(0);
    }
    return bytes;
}

// Bytes in which a place can be told from its neighbours.
Bytes pattern(size_t n, uint32_t seed) {
    std::mt19937 random(seed);
    Bytes bytes(n);
    for (uint8_t &b : bytes) b = random();
    return bytes;
}

void fresh(Device &d, const std::string &what);

void offer(Device &d, const Bytes &bytes) { d.to_host.insert(d.to_host.end(), bytes.begin(), bytes.end()); }

// ---- Requests ----

const Bytes DEVICE = hex("12 01 00 02 00 00 00 40 09 12 01 00 00 01 01 02 03 01");
const char *const CONFIGURATION_HIGH_SPEED =
    "09 02 29 00 01 01 00 c0 00"
    "09 04 00 00 00 ff 54 01 00"
    "09 04 00 01 02 ff 54 01 00"
    "07 05 01 02 00 02 00"
    "07 05 81 02 00 02 00";
const char *const CONFIGURATION_FULL_SPEED =
    "09 02 29 00 01 01 00 c0 00"
    "09 04 00 00 00 ff 54 01 00"
    "09 04 00 01 02 ff 54 01 00"
    "07 05 01 02 40 00 00"
    "07 05 81 02 40 00 00";
const Bytes CONFIGURATION = hex(HIGH_SPEED ? CONFIGURATION_HIGH_SPEED : CONFIGURATION_FULL_SPEED);

// Asks with every length that matters: too short, the descriptor's, whole packets, all there is.
void asks(Device &d, uint8_t kind, uint8_t request, uint16_t value, uint16_t index, const Bytes &want,
          const std::string &what) {
    for (size_t length : {size_t(0), size_t(1), size_t(8), size_t(63), size_t(64), size_t(65), want.size() - 1,
                          want.size(), want.size() + 1, size_t(255), size_t(4096)}) {
        Bytes got;
        same(d.control(kind, request, value, index, length, got), Result::DONE, what);
        same(got, Bytes(want.begin(), want.begin() + std::min(length, want.size())), what);
    }
}

void stalls(Device &d, uint8_t kind, uint8_t request, uint16_t value, uint16_t index, uint16_t length,
            const std::string &what) {
    Bytes data(length);
    same(d.control(kind, request, value, index, length, data), Result::STALLED, what);
}

void status(Device &d, uint8_t kind, uint16_t index, uint8_t want, const std::string &what) {
    asks(d, kind, 0, 0, index, {want, 0}, what);
}

void descriptors(Device &d) {
    d.host.reset();
    // As the first thing that a host asks for, at address 0.
    Bytes got;
    same(d.control(0x80, 6, 0x0100, 0, 64, got), Result::DONE, "device descriptor");
    same(got, DEVICE, "device descriptor");
    d.attach();
    asks(d, 0x80, 6, 0x0100, 0, DEVICE, "device descriptor");
    asks(d, 0x80, 6, 0x0200, 0, CONFIGURATION, "configuration descriptor");
    asks(d, 0x80, 6, 0x0300, 0, hex("04 03 09 04"), "languages");
    asks(d, 0x80, 6, 0x0301, 0x0409, string_descriptor("Tributary"), "manufacturer");
    // With 31 letters this one fills a packet, so a host that asks for more needs one without bytes.
    same(string_descriptor("Tributary card " + config_hash).size(), size_t(64), "size of the product's name");
    asks(d, 0x80, 6, 0x0302, 0x0409, string_descriptor("Tributary card " + config_hash), "product");
    asks(d, 0x80, 6, 0x0303, 0x0409, string_descriptor(serial), "serial number");
    for (int value : {0x0304, 0x03ee, 0x0600, 0x0700, 0x0101, 0x0201, 0x0400, 0x0500, 0x0000, 0x2100}) {
        stalls(d, 0x80, 6, value, 0, 64, "descriptor " + std::to_string(value));
    }
}

void identify(Device &d) {
    d.host.reset();
    same(ident.size(), size_t(104), "size of the identification block");
    asks(d, 0xc0, 1, 0, 0, ident, "Identify, without an address");
    d.attach();
    check(d.link_up(), "the link is up");
    asks(d, 0xc0, 1, 0, 0, ident, "Identify, link up");
    check(d.link_up() && d.link_falls == 0, "Identify leaves the link alone");
    d.set(0x01, 11, 0, 0);
    asks(d, 0xc0, 1, 0, 0, ident, "Identify, link down");
    stalls(d, 0xc0, 1, 1, 0, 104, "Identify with wValue 1");
    stalls(d, 0xc0, 1, 0, 1, 104, "Identify with wIndex 1");
    stalls(d, 0xc0, 1, 256, 0, 104, "Identify with wValue 256");
    stalls(d, 0xc1, 1, 0, 0, 104, "Identify to the interface");
    stalls(d, 0x40, 1, 0, 0, 0, "Identify as a command");
}

// A request that is not known, or not possible now, is stalled, and the next one clears it.
void refused(Device &d) {
    Bytes got;
    auto works = [&] {
        same(d.control(0x80, 6, 0x0100, 0, 18, got), Result::DONE, "the request after one that was stalled");
        same(got, DEVICE, "the answer after one that was stalled");
    };
    d.host.reset();
    // Without a configuration there is no interface 0 and no endpoint 1.
    for (auto [kind, request, value, index, length] : {std::tuple{0x01, 11, 1, 0, 0},
                                                       {0x81, 10, 0, 0, 1},
                                                       {0x81, 0, 0, 0, 2},
                                                       {0x82, 0, 0, 1, 2},
                                                       {0x82, 0, 0, 0x81, 2},
                                                       {0x02, 3, 0, 1, 0}}) {
        stalls(d, kind, request, value, index, length, "a request without configuration");
        works();
    }
    d.attach();
    for (auto [kind, request, value, index, length] :
         {std::tuple{0x00, 9, 2, 0, 0},                       // a configuration that is not there
          {0x00, 9, 0x0101, 0, 0},      {0x01, 11, 2, 0, 0},  // such an alternate setting
          {0x01, 11, 1, 1, 0},                                // such an interface
          {0x81, 10, 0, 1, 1},          {0x81, 0, 0, 1, 2},
          {0x82, 0, 0, 2, 2},  // such an endpoint
          {0x82, 0, 0, 0x82, 2},        {0x02, 3, 0, 2, 0},
          {0x02, 1, 0, 0x82, 0},        {0x02, 3, 0, 0, 0},    // endpoint 0 is never halted
          {0x02, 3, 1, 1, 0},                                  // another feature
          {0x00, 3, 1, 0, 0},                                  // waking the host up
          {0x00, 3, 2, 0x0100, 0},                             // USB's test modes
          {0x00, 1, 1, 0, 0},           {0x00, 5, 128, 0, 0},  // no address
          {0x00, 7, 0x0100, 0, 18},                            // descriptors are not to be set
          {0x82, 12, 0, 0x81, 2},                              // nothing is isochronous
          {0xc0, 2, 0, 0, 8},           {0x40, 0, 0, 0, 0},
          {0x21, 0x22, 3, 0, 0},  // of a class
          {0xa1, 0x21, 0, 0, 7},        {0xff, 0xff, 0xffff, 0xffff, 64},
          {0x00, 0xff, 0, 0, 0}}) {
        stalls(d, kind, request, value, index, length,
               "request " + std::to_string(kind) + " " + std::to_string(request));
        works();
    }
    check(d.link_up() && d.link_falls == 0, "refused requests leave the link alone");
    // A stall lasts until the next request.
    Pipe pipe{d.address, 0};
    Bytes request = usb::Setup{0xc0, 9, 0, 0, 8}.bytes(), data;
    same(d.host.out(pipe, usb::SETUP, request.data(), 8), Result::DONE, "SETUP");
    for (int i = 0; i < 3; i++) same(d.host.in(pipe, data), Result::STALLED, "IN of a request that is stalled");
    for (int i = 0; i < 3; i++)
        same(d.host.out(pipe, usb::OUT, nullptr, 0), Result::STALLED, "OUT of a request that is stalled");
    works();
}

// The states of chapter 9, and what tells them.
void states(Device &d) {
    d.host.reset();
    auto configuration = [&](uint8_t want) { asks(d, 0x80, 8, 0, 0, {want}, "GET_CONFIGURATION"); };
    auto setting = [&](uint8_t want) { asks(d, 0x81, 10, 0, 0, {want}, "GET_INTERFACE"); };
    configuration(0);
    check(!d.configured() && !d.link_up(), "nothing is configured after a reset");
    status(d, 0x80, 0, 1, "status of the device: powered by itself");
    d.set(0x00, 5, 93, 0);
    d.address = 93;
    d.host.pass(15000);
    configuration(0);
    d.set(0x00, 9, 1, 0);
    configuration(1);
    setting(0);
    check(d.configured() && !d.link_up(), "the link is down in alternate setting 0");
    status(d, 0x81, 0, 0, "status of the interface");
    status(d, 0x82, 0, 0, "status of endpoint 0");
    stalls(d, 0x82, 0, 0, 1, 2, "status of an endpoint that the setting does not have");
    d.claim();
    setting(1);
    check(d.link_up(), "the link is up in alternate setting 1");
    status(d, 0x82, 0x01, 0, "status of endpoint 1 OUT");
    status(d, 0x82, 0x81, 0, "status of endpoint 1 IN");
    d.set(0x01, 11, 0, 0);
    setting(0);
    d.host.pass(100);
    check(!d.link_up(), "the link goes down with alternate setting 0");
    d.claim();
    d.set(0x00, 9, 1, 0);
    d.host.pass(100);
    check(!d.link_up(), "the link goes down with the configuration that is set");
    setting(0);
    d.claim();
    d.set(0x00, 9, 0, 0);
    configuration(0);
    d.host.pass(100);
    check(!d.configured() && !d.link_up(), "configuration 0 takes the link down");
    // Endpoints that are not there do not answer.
    Bytes data(8);
    same(d.host.out(d.out, usb::OUT, data.data(), 8), Result::FAILED, "OUT without configuration");
    same(d.host.in(d.in, data), Result::FAILED, "IN without configuration");
    // Nor does a device to an address that is not its own.
    d.address = 92;
    same(d.control(0x80, 8, 0, 0, 1, data), Result::FAILED, "another address");
}

// A request that a host gives up, and one that it begins anew, leave the device ready for the next.
void abandoned(Device &d) {
    d.attach();
    Bytes data, request = usb::Setup{0xc0, 1, 0, 0, 104}.bytes(), got;
    for (int packets : {0, 1, 2}) {
        Pipe pipe{d.address, 0};
        same(d.host.out(pipe, usb::SETUP, request.data(), 8), Result::DONE, "SETUP");
        for (int i = 0; i < packets; i++) {
            Result r;
            do r = d.host.in(pipe, data);
            while (r == Result::NAKED);
            same(r, Result::DONE, "IN");
        }
        same(d.control(0x80, 6, 0x0100, 0, 64, got), Result::DONE, "the request after one that was given up");
        same(got, DEVICE, "the answer after one that was given up");
    }
    // Data of another size than a request's is none, and is not answered.
    Pipe pipe{d.address, 0};
    same(d.host.out(pipe, usb::SETUP, request.data(), 7), Result::FAILED, "a SETUP of 7 bytes");
    Bytes longer(64);
    pipe = {d.address, 0};
    same(d.host.out(pipe, usb::SETUP, longer.data(), 64), Result::FAILED, "a SETUP of 64 bytes");
    same(d.control(0x80, 6, 0x0100, 0, 64, got), Result::DONE, "the request after one that was none");
    same(got, DEVICE, "the answer after one that was none");
}

// ---- The stream ----

// Sends all of it in packets of so many bytes.
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

// The next packet that the device has, within so many cycles.
bool next(Device &d, Bytes &packet, uint64_t cycles = 4000) {
    for (uint64_t end = d.host.now() + cycles; d.host.now() < end;) {
        Result r = d.host.in(d.in, packet);
        if (r == Result::DONE) return true;
        check(r != Result::STALLED, "IN is stalled");
    }
    return false;
}

// The sizes of the packets until the device has nothing more, and their bytes.
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

// Packets of all sizes are the stream; borders mean nothing.
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
    // More than a packet's bytes are no packet of this endpoint: nothing of it is taken, and nothing is said.
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

// Where bursts end, to the cycle and to the byte.
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
    // Bytes with so many cycles of silence between them: from 32 on each is a burst of its own.
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
    // A burst ends also while the host does not ask: with one or two packets waiting, silence, and then more.
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

// A card that takes nothing: whole packets are taken while there is room, and the rest is answered NAK.
void pressure(Device &d) {
    d.attach();
    bool open = false;
    d.takes = [&] { return open; };
    Bytes bytes = pattern(8192, 3);
    // The device holds 2,048 bytes. One stands at the stream port, so there is room for another packet only
    // when all but one of a packet's bytes are taken: the one that takes the room is answered NYET.
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

// Bytes both ways at once, with any sizes and pauses, echoed by the card.
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

// ---- What a wire does ----

// Every packet may be damaged or lost; nothing is lost or doubled in the stream.
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
    // Requests get through as well.
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

// Sends a token in which a bit is turned over, and data behind it, which the device must not answer.
void behind_damaged(Device &d, usb::Pid pid, uint8_t endpoint, bool toggle, const Bytes &data) {
    d.host.gap();
    Bytes token = usb::token_packet(pid, d.address | endpoint << 7);
    token[2] ^= 0x80;
    d.host.send(token);
    d.host.gap();
    d.host.send(usb::data_packet(toggle ? usb::DATA1 : usb::DATA0, data.data(), data.size()));
    check(d.host.receive().empty(), "the device answers data behind a damaged token");
}

// Each fault by itself, and what the device then does.
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
    // Data behind a token that was damaged is nobody's, though the token before it was this endpoint's: as much as
    // may follow that token, and more.
    d.host.fault = [] { return Fault::NONE; };
    for (size_t n : {size_t(0), size_t(1), PACKET / 5, PACKET - 1, PACKET}) {
        same(d.host.out(d.out, usb::OUT, bytes.data(), 1), Result::DONE, "OUT");
        all.push_back(bytes[0]);
        behind_damaged(d, usb::OUT, d.out.endpoint, d.out.toggle, Bytes(bytes.begin(), bytes.begin() + n));
        d.host.pass(1000);
        same(d.from_host, all, "and takes nothing of it");
    }
    // Nor is it a request, though a SETUP has come whose data was lost.
    d.host.gap();
    d.host.send(usb::token_packet(usb::SETUP, d.address));
    d.host.pass(200);
    behind_damaged(d, usb::SETUP, 0, false, usb::Setup{0x01, 11, 0, 0, 0}.bytes());
    d.host.pass(200);
    check(d.link_up(), "a request behind a damaged token is carried out");
    // A data packet that breaks off is none; what follows is taken.
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
    // An ACK that belongs to another device's packet confirms nothing.
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

// What no host sends gets no answer, and leaves the device as it is.
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

// ---- Halts, and claiming again ----

void halts(Device &d) {
    d.attach();
    bool open = false;
    d.takes = [&] { return open; };
    Bytes bytes = pattern(3 * PACKET - PACKET / 16, 1), packet;
    // One packet each way passes, so that the toggles are DATA1, and one each way waits.
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
    // The stream goes on where it was, with DATA0.
    Bytes got;
    packets(d, got);
    same(got, Bytes(bytes.begin() + 2 * PACKET, bytes.end()), "IN after the halt");
    open = true;
    send(d, Bytes(bytes.begin() + PACKET + PACKET / 5, bytes.end()), PACKET);
    d.host.pass(3000);
    same(d.from_host, bytes, "what the card got");
    same(d.link_falls, uint64_t(0), "halts leave the link alone");
    // Claiming again clears them.
    d.set(0x02, 3, 0, 0x01);
    d.set(0x02, 3, 0, 0x81);
    d.claim();
    status(d, 0x82, 0x01, 0, "status after claiming again");
    status(d, 0x82, 0x81, 0, "status after claiming again");
    // Clearing what is not halted puts the toggle back as well (USB 9.4.5).
    same(d.host.out(d.out, usb::OUT, bytes.data(), 8), Result::DONE, "OUT");
    d.set(0x02, 1, 0, 0x01);
    d.out.toggle = false;
    same(d.host.out(d.out, usb::OUT, bytes.data(), 8), Result::DONE, "OUT");
    d.host.pass(100);
    same(d.from_host.size(), bytes.size() + 16, "bytes after the toggle was put back");
}

// Leaves the device in the middle of everything: bytes that the card has not taken, a burst of which one packet has gone.
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

// A link on which nothing was sent.
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

// Whatever takes the link down leaves nothing behind, and the toggles at DATA0.
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
        // Twice at once, before the far side has seen that the link was up.
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

// While the far side has not dropped what it has, all is answered NAK: both endpoints and the status stage.
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
        if (d.link_up() && !was_up) continue;  // it came up meanwhile
        same(out, Result::NAKED, "OUT before the link is up");
        same(in, Result::NAKED, "IN before the link is up");
        check(d.host.now() < begin + 200'000, "the link does not come up");
    }
    check(d.link_up() && d.host.now() > begin + 30'000, "the link waited for the far side");
    check(rounds > (HIGH_SPEED ? 20 : 5), "few rounds");
    d.clear_after = 20;
    d.claim();
    fresh(d, "after the wait");
    // A host that gives the request up, and another one that comes in the meantime, change nothing of that.
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

// A bus reset forgets everything; the next host begins as the first one did.
void bus_reset(Device &d) {
    d.attach();
    for (int i = 0; i < 2; i++) {
        d.host.reset_us = i ? 1000 : 10'000;
        in_the_middle(d);
        uint64_t falls = d.link_falls;
        if (i) {  // and in the middle of a packet
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

// A bus without frames is suspended; the device stays as it is.
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

// As fast as the bus: 13 packets, which a microframe may hold (USB, table 5-10), or 19, which a frame at full speed
// may (table 5-9), with a host that never waits.
void rate(Device &d) {
    d.attach();
    const int FRAMES = 20, MOST = HIGH_SPEED ? 13 : 19;
    Bytes bytes = pattern(PACKET, 3), packet;
    // Bytes with few ones in a row, so that no bits are stuffed.
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

using Cases = std::map<std::string, void (*)(Device &)>;

}  // namespace

#include "cases.h"

namespace {

const Cases CASES = [] {
    Cases all = {
        {"descriptors", descriptors}, {"identify", identify},   {"refused", refused},
        {"states", states},           {"abandoned", abandoned}, {"garbage", garbage},
        {"out_sizes", out_sizes},     {"bursts", bursts},       {"pressure", pressure},
        {"echo", echo},               {"faults", faults},       {"repeats", repeats},
        {"halts", halts},             {"claims", claims},       {"waiting", waiting},
        {"bus_reset", bus_reset},     {"suspend", suspend},     {"rate", rate},
    };
    all.insert(OWN.begin(), OWN.end());
    return all;
}();

bool run(const std::string &name) {
    Device d;
    d.host.limit = 30'000'000;
    try {
        CASES.at(name)(d);
        printf("ok   %s, %.1f Mcycles\n", name.c_str(), d.host.now() / 1e6);
        return true;
    } catch (const std::exception &e) {
        printf("FAIL %s, cycle %llu: %s\n", name.c_str(), (unsigned long long)d.host.now(), e.what());
        return false;
    }
}

}  // namespace

int main(int argc, char **argv) {
    setvbuf(stdout, nullptr, _IOLBF, 0);
    if (argc == 2 && !strcmp(argv[1], "--list")) {
        for (const auto &[name, _] : CASES) puts(name.c_str());
        return 0;
    }
    if (argc < 5) {
        fputs("usage: device_bench HASH SERIAL IDENT CASE... | --list\n", stderr);
        return 2;
    }
    config_hash = argv[1];
    serial = argv[2];
    ident = hex(argv[3]);
    int failed = 0;
    for (int i = 4; i < argc; i++) {
        if (!CASES.count(argv[i])) {
            fprintf(stderr, "there is no case %s\n", argv[i]);
            return 2;
        }
        failed += !run(argv[i]);
    }
    return failed > 0;
}
