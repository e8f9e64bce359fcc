// A USB wire as the host sees it, independent of what connects it to the gateware: a PHY, or the
// FPGA's own pins. Time is counted in the device's cycles, of 60 MHz.
#pragma once

#include <cstdint>
#include <deque>
#include <stdexcept>
#include <string>
#include <vector>

namespace usb {

using Bytes = std::vector<uint8_t>;

// The gateware broke a rule for devices.
struct Violation : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// The host's line state while it sends no packet.
enum class Lines { IDLE, SE0, J, K };

// A packet from the device.
struct Sent {
    Bytes bytes;
    uint64_t begin, end;  // cycles: start of SYNC, end of the end of packet
};

class Wire {
  public:
    virtual ~Wire() = default;

    uint64_t now = 0;  // cycles
    Lines lines = Lines::IDLE;
    bool vbus = true;

    virtual bool high_speed() const = 0;
    virtual bool pulled_up() const = 0;
    // The device is in high speed, after a chirp.
    virtual bool terminated() const = 0;
    // The device drives a chirp K.
    virtual bool chirping() const = 0;

    // Sends a packet to the device. The wire is free again after `busy_until`.
    virtual void send(const Bytes &packet) = 0;
    uint64_t busy_until = 0;

    // The device sends a packet.
    virtual bool transmitting() const = 0;
    std::deque<Sent> sent;
};

}  // namespace usb
