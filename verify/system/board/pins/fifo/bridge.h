// FTDI's FT2232H as a USB device, for transfers as a kernel submits them: descriptors, the
// requests of SPEC.md, section 10.3, packets with two status bytes, and the latency timer. Its
// EEPROM makes channel A a FIFO; channel B is unconnected.
#pragma once

#include <functional>
#include <list>
#include <utility>

#include "controller.h"
#include "fifo/board.h"

namespace usb {

class Bridge {
  public:
    using Ended = Controller::Ended;

    Bridge(Bus &bus, Ended ended) : bus(bus), ended(std::move(ended)) {}

    // Plugs the cable in. Returns the device descriptor.
    Bytes plug() {
        begin();
        return DEVICE;
    }

    // Resets the bus while the chip is in use. The chip leaves its mode. Transfers end, both
    // waiting ones and new ones until the next request: after such a reset the kernel takes the
    // interface from the program.
    void reset() {
        for (auto *queue : {&control, &out, &in}) {
            while (!queue->empty()) end(*queue, SHUT_DOWN);
        }
        begin();
        taken = true;
    }

    // Halts a bulk endpoint without notifying the host's programs.
    void halt(uint8_t endpoint) { halted(endpoint) = true; }

    // Changes the next byte for the bulk endpoint.
    void flip() { flips = true; }

    uint64_t passed = 0;  // bytes sent to the OUT endpoint

    // Unplugs the device. No waiting transfer is reported.
    void unplug() {
        for (auto *queue : {&control, &out, &in}) queue->clear();
        begin();
        bus.pass(4000);
    }

    void submit(Transfer t) { queue(t.endpoint).push_back(std::move(t)); }

    // Cancels a transfer, and returns whether it was still waiting.
    bool unlink(uint32_t seq) {
        for (auto *queue : {&control, &out, &in}) {
            for (auto t = queue->begin(); t != queue->end(); ++t) {
                if (t->seq == seq) {
                    queue->erase(t);
                    return true;
                }
            }
        }
        return false;
    }

    // Makes a control transfer, or passes a packet for each bulk endpoint with a waiting
    // transfer, and the time of a packet. Returns whether any made progress.
    bool work() {
        if (!control.empty()) {
            Transfer t = std::move(control.front());
            control.pop_front();
            taken = false;
            ended(t, request(t));
            return true;
        }
        uint64_t before = bus.chip.moved;
        bool sent = !out.empty() && send();
        bool received = !in.empty() && receive();
        bus.pass(PACKET_CYCLES);
        return sent || received || bus.chip.moved != before;
    }

  private:
    static constexpr size_t PACKET = 512, STATUS = 2;
    static constexpr uint64_t PACKET_CYCLES = 700;  // of 60 MHz: about the time of a bulk packet at high speed
    static constexpr uint64_t MILLISECOND = 60'000;
    static constexpr uint8_t OUT_ENDPOINT = 0x02, IN_ENDPOINT = 0x81;

    // An FT2232H, release 7.00: two interfaces, each with two bulk endpoints.
    static inline const Bytes DEVICE = {18,   1,    0x00, 0x02, 0,    0,    0,    64,   0x03,
                                        0x04, 0x10, 0x60, 0x00, 0x07, 1,    2,    3,    1};
    static inline const Bytes CONFIGURATION = {
        9, 2, 55, 0,    2, 1, 0,    0x80, 250,                                           // bus-powered, 500 mA
        9, 4, 0,  0,    2, 0xff, 0xff, 0xff, 2,                                          // channel A
        7, 5, 0x81, 2, 0x00, 0x02, 0, 7, 5, 0x02, 2, 0x00, 0x02, 0,                      //
        9, 4, 1,  0,    2, 0xff, 0xff, 0xff, 2,                                          // channel B
        7, 5, 0x83, 2, 0x00, 0x02, 0, 7, 5, 0x04, 2, 0x00, 0x02, 0};

    static Bytes text(uint8_t index) {
        if (index == 0) return {4, 3, 0x09, 0x04};
        std::string letters = index == 1 ? "FTDI" : index == 2 ? "Dual RS232-HS" : "BENCH-1";
        Bytes descriptor = {uint8_t(2 + 2 * letters.size()), 3};
        for (char c : letters) descriptor.insert(descriptor.end(), {uint8_t(c), 0});
        return descriptor;
    }

    std::list<Transfer> &queue(uint8_t endpoint) { return !(endpoint & 0x7f) ? control : endpoint & 0x80 ? in : out; }
    bool &halted(uint8_t endpoint) { return endpoint & 0x80 ? in_halted : out_halted; }

    void begin() {
        bus.chip.synchronous = in_halted = out_halted = taken = false;
        bus.chip.empty();
        latency = 16;
    }

    // Answers a request with data, cut to the requested length.
    int32_t answer(Transfer &t, const Bytes &data) {
        t.data.assign(data.begin(), data.begin() + std::min(data.size(), t.length));
        return GOOD;
    }

    int32_t request(Transfer &t) {
        const Setup &s = t.setup;
        switch (s.kind << 8 | s.request) {
        case 0x8006:
            if (s.value == 0x0100) return answer(t, DEVICE);
            if (s.value == 0x0200) return answer(t, CONFIGURATION);
            if (s.value >> 8 == 3 && (s.value & 0xff) <= 3) return answer(t, text(s.value));
            return STALL_STATUS;
        case 0x8000:
            return answer(t, {0, 0});
        case 0x8200:
            if (s.index != OUT_ENDPOINT && s.index != IN_ENDPOINT) return STALL_STATUS;
            return answer(t, {uint8_t(halted(s.index)), 0});
        case 0x0201:
            halted(s.index) = false;
            return GOOD;
        case 0x0005:
        case 0x010b:
            return GOOD;
        case 0x0009:
            in_halted = out_halted = false;
            return GOOD;
        }
        return vendor(t);
    }

    // FTDI's vendor requests, for channel A.
    int32_t vendor(Transfer &t) {
        const Setup &s = t.setup;
        if (s.kind == 0xc0 && s.request == 0x90) return s.index == 0 ? answer(t, {0x01, 0x01}) : STALL_STATUS;
        if (s.kind == 0xc0 && s.request == 0x0a) return answer(t, {latency});
        if (s.kind != 0x40 || (s.index & 0xff) != 1) return STALL_STATUS;
        switch (s.request) {
        case 0x00:  // reset, or empty either buffer
            if (s.value == 1) bus.chip.to_card.clear();
            if (s.value == 2) bus.chip.to_host.clear();
            return s.value <= 2 ? GOOD : STALL_STATUS;
        case 0x02:
            return GOOD;
        case 0x09:
            latency = s.value;
            return GOOD;
        case 0x0b:
            bus.chip.synchronous = s.value >> 8 == 0x40;
            bus.pass(1);
            return GOOD;
        }
        return STALL_STATUS;
    }

    // Passes a packet to the chip, unless the chip lacks room for all of it or has no bus clock.
    bool send() {
        Transfer &t = out.front();
        if (taken || out_halted) {
            end(out, taken ? SHUT_DOWN : STALL_STATUS);
            return true;
        }
        size_t n = std::min(t.data.size() - t.done, PACKET);
        if (!bus.chip.synchronous || bus.chip.room() < n) return false;
        if (n && std::exchange(flips, false)) t.data[t.done] ^= 0x10;
        bus.chip.to_card.insert(bus.chip.to_card.end(), t.data.begin() + t.done, t.data.begin() + t.done + n);
        t.done += n;
        passed += n;
        bus.transactions++;
        if (t.done == t.data.size()) end(out, GOOD);
        return true;
    }

    // Passes a packet from the chip: a full one, one that the card requested, or a short one when
    // the timer expires. A packet with only the status is no progress.
    bool receive() {
        Transfer &t = in.front();
        if (taken || in_halted) {
            end(in, taken ? SHUT_DOWN : STALL_STATUS);
            return true;
        }
        auto &bytes = bus.chip.to_host;
        bool over = bus.now() - sent_at > latency * MILLISECOND;
        if (bytes.size() < PACKET - STATUS && !bus.chip.asked && !over) return !bytes.empty();
        size_t n = std::min(bytes.size(), PACKET - STATUS);
        t.data.insert(t.data.end(), {0x32, 0x60});
        t.data.insert(t.data.end(), bytes.begin(), bytes.begin() + n);
        bytes.erase(bytes.begin(), bytes.begin() + n);
        if (bytes.empty()) bus.chip.asked = false;
        sent_at = bus.now();
        bus.transactions++;
        if (n < PACKET - STATUS || t.data.size() == t.length) end(in, GOOD);
        return n > 0;
    }

    void end(std::list<Transfer> &queue, int32_t status) {
        Transfer t = std::move(queue.front());
        queue.pop_front();
        ended(t, status);
    }

    Bus &bus;
    Ended ended;
    bool flips = false, in_halted = false, out_halted = false, taken = false;
    uint8_t latency = 16;  // milliseconds
    uint64_t sent_at = 0;  // time of the last packet to the host
    std::list<Transfer> control, out, in;
};

}  // namespace usb
