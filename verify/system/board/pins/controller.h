// A host controller. It takes transfers as a kernel submits them, and a Host makes them as
// transactions at the pins. It has a bus driver's knowledge of a device: its address, and when
// its data toggles restart.
#pragma once

#include <functional>
#include <list>
#include <utility>

#include "host.h"

namespace usb {

// Status of a transfer, a negative error number of Linux.
enum Status : int32_t {
    GOOD = 0,
    STALL_STATUS = -32,
    PROTOCOL = -71,
    OVERFLOW_STATUS = -75,
    UNLINKED = -104,
    SHUT_DOWN = -108
};

struct Transfer {
    uint32_t seq;
    uint8_t endpoint;  // with the direction in bit 7
    Setup setup;       // of endpoint 0
    Bytes data;        // to send, or received
    size_t length;     // requested
    size_t done = 0;   // bytes sent
    int failed = 0;    // transactions in a row
};

class Controller {
  public:
    using Ended = std::function<void(const Transfer &, int32_t status)>;

    Controller(Host &host, Ended ended) : host(host), ended(std::move(ended)) {}

    // Plugs a device in, resets it and gives it an address. Returns its device descriptor.
    Bytes plug() {
        host.phy.vbus = true;
        host.phy.lines = Lines::IDLE;
        host.connect();
        configuration = 0;
        return begin();
    }

    // Resets the bus while the device is in use. Ends waiting transfers, and restores the
    // device's state without claims.
    void reset() {
        for (auto *queue : {&control, &out, &in}) {
            while (!queue->empty()) end(*queue, SHUT_DOWN);
        }
        begin();
        if (configuration) set({0x00, 9, configuration, 0, 0}, "is not configured again");
    }

    // Halts a bulk endpoint without notifying the host's programs.
    void halt(uint8_t endpoint) { set({0x02, 3, 0, endpoint, 0}, "does not halt an endpoint"); }

    // Changes the next byte for a bulk endpoint. USB cannot detect that.
    void flip() { flips = true; }

    uint64_t passed = 0;  // bytes sent to the device's OUT endpoint

    // Unplugs the device. No waiting transfer is reported.
    void unplug() {
        for (auto *queue : {&control, &out, &in}) queue->clear();
        host.phy.vbus = false;
        host.phy.lines = Lines::SE0;
        host.wait(4000);
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

    bool idle() const { return control.empty() && out.empty() && in.empty(); }

    // Makes a control transfer, or a transaction for each bulk endpoint with a waiting transfer.
    // Returns whether any made progress.
    bool work() {
        host.pass(1);
        if (!control.empty()) {
            Transfer t = std::move(control.front());
            control.pop_front();
            ended(t, request(t));
            return true;
        }
        bool moved = !out.empty() && send();
        return (!in.empty() && receive()) || moved;
    }

  private:
    static constexpr uint8_t ADDRESS = 5;

    std::list<Transfer> &queue(uint8_t endpoint) { return !(endpoint & 0x7f) ? control : endpoint & 0x80 ? in : out; }

    Bytes begin() {
        host.reset();
        address = 0;
        set({0x00, 5, ADDRESS, 0, 0}, "takes no address");
        address = ADDRESS;
        host.pass(2 * 7500);
        Bytes descriptor;
        if (host.control(address, {0x80, 6, 0x0100, 0, 18}, descriptor) != Result::DONE || descriptor.size() != 18) {
            throw Violation("USB: the device has no device descriptor");
        }
        restart();
        return descriptor;
    }

    // Makes one of the host's own requests, which must succeed.
    void set(const Setup &setup, const char *what) {
        Bytes none;
        if (host.control(address, setup, none) != Result::DONE) throw Violation(std::string("USB: the device ") + what);
    }

    void restart() { out_pipe = {address, 1, false, false}, in_pipe = {address, 1, false, false}; }

    int32_t request(Transfer &t) {
        const Setup &s = t.setup;
        if (s.kind == 0x00 && s.request == 5) return GOOD;  // the controller assigns addresses
        Result r = host.control(address, s, t.data);
        if (r != Result::DONE) return r == Result::STALLED ? STALL_STATUS : PROTOCOL;
        bool configures = s.kind == 0x00 && s.request == 9, selects = s.kind == 0x01 && s.request == 11;
        bool clears = s.kind == 0x02 && s.request == 1 && s.value == 0;
        if (configures) configuration = s.value;
        if (configures || selects) restart();
        if (clears && s.index == 0x01) out_pipe.toggle = false;
        if (clears && s.index == 0x81) in_pipe.toggle = false;
        return GOOD;
    }

    bool send() {
        Transfer &t = out.front();
        size_t n = std::min(t.data.size() - t.done, host.packet_bytes());
        if (n && std::exchange(flips, false)) t.data[t.done] ^= 0x10;
        Result r = host.out(out_pipe, OUT, t.data.data() + t.done, n);
        if (r == Result::DONE) {
            t.done += n;
            passed += n;
            t.failed = 0;
            if (t.done == t.data.size()) end(out, GOOD);
            return true;
        }
        return gives_up(out, r);
    }

    bool receive() {
        Transfer &t = in.front();
        Bytes packet;
        Result r = host.in(in_pipe, packet);
        if (r != Result::DONE) return gives_up(in, r);
        t.failed = 0;
        t.data.insert(t.data.end(), packet.begin(), packet.end());
        if (t.data.size() > t.length) {
            t.data.resize(t.length);
            end(in, OVERFLOW_STATUS);
        } else if (packet.size() < host.packet_bytes() || t.data.size() == t.length) {
            end(in, GOOD);
        }
        return true;
    }

    // A stall ends a transfer, as do three transactions in a row without an answer.
    bool gives_up(std::list<Transfer> &queue, Result r) {
        Transfer &t = queue.front();
        t.failed = r == Result::FAILED ? t.failed + 1 : 0;
        if (r == Result::STALLED)
            end(queue, STALL_STATUS);
        else if (t.failed == 3)
            end(queue, PROTOCOL);
        else
            return false;
        return true;
    }

    void end(std::list<Transfer> &queue, int32_t status) {
        Transfer t = std::move(queue.front());
        queue.pop_front();
        ended(t, status);
    }

    Host &host;
    Ended ended;
    uint8_t address = 0;
    uint16_t configuration = 0;
    bool flips = false;
    Pipe out_pipe, in_pipe;
    std::list<Transfer> control, out, in;
};

}  // namespace usb
