// A USB host at the other end of a wire. It resets the bus and makes transactions, microframe by
// microframe, as USB 2.0, chapters 5, 7 and 8, requires of a host controller. It builds and
// checks every packet itself: PIDs, CRCs, data toggles, handshakes, PING, retries, and the
// device's time to answer.
//
// A test may lose or damage packets on the way. If the device breaks the rules, the host throws a
// Violation.
#pragma once

#include <algorithm>
#include <functional>
#include <random>

#include "wire.h"

namespace usb {

// PIDs (USB 8.3.1).
enum Pid : uint8_t {
    OUT = 0x1,
    IN = 0x9,
    SOF = 0x5,
    SETUP = 0xd,
    PING = 0x4,
    DATA0 = 0x3,
    DATA1 = 0xb,
    ACK = 0x2,
    NAK = 0xa,
    STALL = 0xe,
    NYET = 0x6,
};

// CRC5 over the 11 bits of a token (USB 8.3.5.1): x^5+x^2+1, first bit first, from all ones, inverted.
inline uint8_t crc5(uint16_t bits) {
    uint8_t crc = 0x1f;
    for (int i = 0; i < 11; i++) {
        bool feedback = (crc >> 4 & 1) != (bits >> i & 1);
        crc = crc << 1 & 0x1f;
        if (feedback) crc ^= 0x05;
    }
    uint8_t sent = 0;  // highest coefficient first
    for (int i = 0; i < 5; i++) sent |= (~crc >> (4 - i) & 1) << i;
    return sent;
}

// CRC16 over the bytes of a data packet (USB 8.3.5.2): x^16+x^15+x^2+1, computed and sent like
// CRC5.
inline uint16_t crc16(const uint8_t *data, size_t n) {
    uint16_t crc = 0xffff;
    for (size_t k = 0; k < n; k++) {
        for (int i = 0; i < 8; i++) {
            bool feedback = (crc & 1) != (data[k] >> i & 1);
            crc >>= 1;
            if (feedback) crc ^= 0xa001;
        }
    }
    return ~crc;
}

inline uint8_t pid_byte(Pid pid) { return uint8_t(~pid << 4 | pid); }

inline Bytes token_packet(Pid pid, uint16_t eleven_bits) {
    uint16_t word = eleven_bits | crc5(eleven_bits) << 11;
    return {pid_byte(pid), uint8_t(word), uint8_t(word >> 8)};
}

inline Bytes data_packet(Pid pid, const uint8_t *data, size_t n) {
    Bytes packet;
    packet.reserve(n + 3);
    packet.push_back(pid_byte(pid));
    packet.insert(packet.end(), data, data + n);
    uint16_t crc = crc16(data, n);
    packet.push_back(crc);
    packet.push_back(crc >> 8);
    return packet;
}

// The fault of a transaction's packets on the wire.
enum class Fault {
    NONE,
    TOKEN,      // the device sees a damaged token
    DATA,       // a bit of the data packet is inverted, in either direction
    HANDSHAKE,  // the handshake is lost, in either direction
};

// How a transaction ended, as the host sees it.
enum class Result { DONE, NAKED, NYETED, STALLED, FAILED };

// The host's side of an endpoint.
struct Pipe {
    uint8_t address = 0;
    uint8_t endpoint = 0;
    bool toggle = false;
    bool ping = false;  // the next transaction starts with PING
};

struct Setup {
    uint8_t kind, request;
    uint16_t value, index, length;

    Bytes bytes() const {
        return {kind,
                request,
                uint8_t(value),
                uint8_t(value >> 8),
                uint8_t(index),
                uint8_t(index >> 8),
                uint8_t(length),
                uint8_t(length >> 8)};
    }
};

class Host {
  public:
    // A model connects the gateware to the host. `settle` passes the model's pins of this cycle
    // to the gateware, and returns the gateware's outputs; `rise` is the clock's edge.
    template <class Model, class Settle, class Rise>
    Host(Model &model, Settle settle, Rise rise) : phy(model), step([&model, settle, rise] {
        typename Model::Pins pins;
        model.drive(pins);
        settle(pins);
        model.sample(pins);
        rise();
    }) {}

    Wire &phy;
    bool full_speed = false;      // behave as a host without high speed
    uint64_t reset_us = 10'000;   // of a reset at full speed; shorter ones suffice for a device that does not chirp
    uint64_t slowest_answer = 0;  // cycles from the end of a host's packet to the start of the device's
    uint64_t transactions = 0;

    // Returns the fault of each transaction.
    std::function<Fault()> fault = [] { return Fault::NONE; };

    uint64_t packet_bytes() const { return full_speed ? 64 : 512; }
    uint64_t now() const { return phy.now; }

    // Time limit of a test.
    uint64_t limit = UINT64_MAX;

    void cycle() {
        if (now() >= limit) throw Violation("USB: the device keeps the host waiting");
        step();
    }

    void wait(uint64_t cycles) {
        for (uint64_t end = now() + cycles; now() < end;) cycle();
    }

    // Waits for a device's pull-up, and a little longer (USB 7.1.7.3: 100 ms at least).
    void connect() {
        until([&] { return phy.pulled_up() && !phy.high_speed(); }, 600000, "does not connect");
        wait(6000);
    }

    // Resets the bus and determines the device's speed (USB 7.1.7.5). It uses the shortest times
    // that a host may, for a short simulation; a real host resets for 10 ms or more.
    void reset() {
        const uint64_t US = 60;
        phy.lines = Lines::SE0;
        uint64_t begin = now();
        if (!full_speed) {
            until([&] { return phy.chirping(); }, 6000 * US, "does not chirp");
            uint64_t chirp = now();
            until([&] { return !phy.chirping(); }, 7000 * US, "does not end its chirp");
            if (now() - chirp < 1000 * US) throw Violation("USB: the device chirps for less than 1 ms");
            wait(50 * US);
            for (int i = 0; i < 8; i++) {
                phy.lines = i % 2 ? Lines::J : Lines::K;
                wait(50 * US);
            }
            phy.lines = Lines::SE0;
            wait(100 * US);
            if (!phy.terminated()) throw Violation("USB: the device is not at high speed after its chirp was answered");
        } else {
            wait(begin + reset_us * US - now());
        }
        phy.lines = Lines::IDLE;
        wait(10 * US);
        frame = 0;
        frame_begin = now();
        begin_frame();
    }

    // Advances time, with frames.
    void pass(uint64_t cycles) {
        for (uint64_t end = now() + cycles; now() < end;) {
            keep_frames(0);
            cycle();
        }
    }

    uint64_t frames() const { return frame; }

    // One transaction of bulk or of a control transfer's stages. `taken` is whether the host
    // knows that the device has the bytes.
    Result out(Pipe &pipe, Pid token, const uint8_t *data, size_t n) {
        transactions++;
        keep_frames(transaction_cycles(n));
        if (pipe.ping && !full_speed) {
            Bytes answer = ask(pipe, PING, fault());
            if (!is(answer, ACK)) return handshake(answer);
            pipe.ping = false;
            gap();
        }
        Fault f = fault();
        send_token(pipe, token, f);
        gap();
        Bytes packet = data_packet(pipe.toggle ? DATA1 : DATA0, data, n);
        if (f == Fault::DATA) damage(packet);
        send(packet);
        Bytes answer = receive();
        if (f == Fault::HANDSHAKE) answer.clear();
        Result result = handshake(answer);
        // Without a handshake the host sends PING before it repeats the data (USB 8.5.1).
        if (result == Result::NAKED || result == Result::NYETED || result == Result::FAILED)
            pipe.ping = token == OUT && pipe.endpoint != 0;
        if (result == Result::NYETED) result = Result::DONE;
        if (result == Result::DONE) pipe.toggle = !pipe.toggle;
        return result;
    }

    // IN: with DONE, `data` holds the packet. The host acknowledges and drops a repeated packet,
    // and returns FAILED.
    Result in(Pipe &pipe, Bytes &data) {
        transactions++;
        keep_frames(transaction_cycles(packet_bytes()));
        data.clear();
        Fault f = fault();
        Bytes answer = ask(pipe, IN, f);
        if (f == Fault::DATA && answer.size() > 1) damage(answer);
        if (answer.size() < 3) return handshake(answer);
        if (!is(answer, DATA0) && !is(answer, DATA1))
            throw Violation("USB: the device sends what is neither data nor a handshake");
        size_t n = answer.size() - 3;
        uint16_t crc = crc16(answer.data() + 1, n);
        if (crc != (answer[n + 1] | answer[n + 2] << 8)) {
            if (f != Fault::DATA) throw Violation("USB: the device sends a wrong CRC16");
            return Result::FAILED;
        }
        if (n > packet_bytes()) throw Violation("USB: the device sends more than a packet holds");
        if (f != Fault::HANDSHAKE) {
            wait(full_speed ? 5 : 2);
            send({pid_byte(ACK)});
        } else {
            // The host has the packet, but the device does not know that.
            wait(120);
        }
        if (is(answer, DATA1) != pipe.toggle) return Result::FAILED;
        pipe.toggle = !pipe.toggle;
        data.assign(answer.begin() + 1, answer.end() - 2);
        return Result::DONE;
    }

    // A control transfer. Returns DONE or STALLED. A stage that is answered NAK is repeated for
    // up to `patience` frames, and then FAILED.
    Result control(uint8_t address, const Setup &setup, Bytes &data, int patience = 400) {
        Pipe pipe{address, 0, false, false};
        Bytes request = setup.bytes();
        Result r = repeat(patience, [&] {
            pipe.toggle = false;
            Result r = out(pipe, SETUP, request.data(), request.size());
            if (r == Result::NAKED || r == Result::STALLED) throw Violation("USB: the device does not take a SETUP");
            return r;
        });
        if (r != Result::DONE) return r;
        pipe.toggle = true;
        bool to_host = setup.kind & 0x80;
        if (setup.length && to_host) {
            data.clear();
            for (Bytes packet;;) {
                r = repeat(patience, [&] { return in(pipe, packet); });
                if (r != Result::DONE) return r;
                data.insert(data.end(), packet.begin(), packet.end());
                if (data.size() > setup.length) throw Violation("USB: the device sends more than was asked for");
                if (packet.size() < 64 || data.size() == setup.length) break;
            }
        } else if (setup.length) {
            r = repeat(patience, [&] { return out(pipe, OUT, data.data(), data.size()); });
            if (r != Result::DONE) return r;
        }
        pipe.toggle = true;
        if (setup.length && to_host) return repeat(patience, [&] { return out(pipe, OUT, nullptr, 0); });
        return repeat(patience, [&] {
            Bytes none;
            Result r = in(pipe, none);
            if (r == Result::DONE && !none.empty()) throw Violation("USB: a status stage has bytes");
            return r;
        });
    }

    // The cycles of a packet with n bytes of data, without stuffed bits.
    uint64_t packet_cycles(size_t n) const {
        uint64_t bits = full_speed ? 8 + 8 * (n + 3) + 3 : 32 + 8 * (n + 3) + 8;
        return full_speed ? bits * 5 : bits / 8;
    }

    // Sends bytes unchanged, without regard to frames.
    void send(const Bytes &packet) {
        if (now() < phy.busy_until) wait(phy.busy_until - now());
        phy.sent.clear();
        phy.send(packet);
        wait(phy.busy_until - now());
    }

    // Returns the device's packet, if one starts in time (USB 7.1.18, 7.1.19: 736 to 816 bit
    // times); else nothing. A device must start within 192 bit times at high speed, 6.5 at full
    // speed, including the PHY's delays.
    Bytes receive() {
        const uint64_t timeout = full_speed ? 18 * 5 : 102, latest = full_speed ? 9 * 5 : 24;
        uint64_t end = now();
        while (phy.sent.empty() && !phy.transmitting() && now() < end + timeout) cycle();
        while (phy.transmitting()) cycle();
        if (phy.sent.empty()) return {};
        Sent sent = phy.sent.front();
        phy.sent.pop_front();
        slowest_answer = std::max(slowest_answer, sent.begin - end);
        if (sent.begin - end > latest)
            throw Violation("USB: the device answers after " + std::to_string(sent.begin - end) + " cycles");
        while (now() < sent.end) cycle();
        if (sent.bytes.empty() || (sent.bytes[0] >> 4 ^ 0xf) != (sent.bytes[0] & 0xf))
            throw Violation("USB: the device sends a wrong PID");
        return sent.bytes;
    }

    static bool is(const Bytes &packet, Pid pid) { return !packet.empty() && packet[0] == pid_byte(pid); }

    // Waits the least time between two packets of a host (USB 7.1.18.2: 88 bit times).
    void gap() { wait(full_speed ? 2 * 5 : 11); }

    std::mt19937 random{1};

  private:
    static constexpr uint64_t MICROFRAME = 7500;  // cycles

    uint64_t frame_cycles() const { return full_speed ? 8 * MICROFRAME : MICROFRAME; }

    // The longest time of a transaction: token, data, handshake, and the gaps between them.
    uint64_t transaction_cycles(size_t n) const {
        const uint64_t gaps = full_speed ? 2 * 10 + 45 : 2 * 11 + 24;
        return 2 * packet_cycles(0) + packet_cycles(n) + gaps;
    }

    // Starts the next frame when it is due, or when a transaction of `need` cycles no longer
    // fits.
    void keep_frames(uint64_t need) {
        const uint64_t end = frame_begin + frame_cycles();
        if (now() + need < end) return;
        if (need) {
            while (now() < end) cycle();
        }
        if (now() < end) return;
        frame++;
        frame_begin = end;
        begin_frame();
    }

    void begin_frame() {
        uint16_t number = (full_speed ? frame : frame / 8) & 0x7ff;
        send(token_packet(SOF, number));
        gap();
    }

    Bytes ask(const Pipe &pipe, Pid token, Fault f) {
        send_token(pipe, token, f);
        Bytes answer = receive();
        if (f == Fault::HANDSHAKE && answer.size() == 1) answer.clear();
        return answer;
    }

    void send_token(const Pipe &pipe, Pid pid, Fault f) {
        gap();
        Bytes packet = token_packet(pid, pipe.address | pipe.endpoint << 7);
        if (f == Fault::TOKEN) packet[1 + random() % 2] ^= 1 << random() % 8;
        send(packet);
    }

    // Inverts a bit after the PID.
    void damage(Bytes &packet) { packet[1 + random() % (packet.size() - 1)] ^= 1 << random() % 8; }

    Result handshake(const Bytes &answer) {
        if (answer.empty()) return Result::FAILED;
        if (answer.size() == 1) {
            if (is(answer, ACK)) return Result::DONE;
            if (is(answer, NAK)) return Result::NAKED;
            if (is(answer, STALL)) return Result::STALLED;
            if (is(answer, NYET) && !full_speed) return Result::NYETED;
        }
        throw Violation("USB: the device answers with what is no handshake");
    }

    // Repeats a transaction after NAK. After three in a row without an answer it fails, as with a
    // host (USB 8.7.1.4).
    Result repeat(int patience, const std::function<Result()> &transaction) {
        int failed = 0;
        for (uint64_t begin = frame; frame - begin < uint64_t(patience);) {
            Result r = transaction();
            if (r == Result::DONE || r == Result::STALLED) return r;
            if (r == Result::NAKED) pass(200);
            failed = r == Result::FAILED ? failed + 1 : 0;
            if (failed == 3) return r;
        }
        return Result::FAILED;
    }

    void until(const std::function<bool()> &holds, uint64_t cycles, const char *what) {
        for (uint64_t end = now() + cycles; !holds(); cycle()) {
            if (now() >= end) throw Violation(std::string("USB: the device ") + what);
        }
    }

    std::function<void()> step;
    uint64_t frame = 0, frame_begin = 0;
};

}  // namespace usb
