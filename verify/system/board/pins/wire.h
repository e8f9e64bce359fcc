// A USB wire as the host at its end sees it, whatever stands between it and the gateware:
// a PHY, or the FPGA's own pins. Time is counted in the device's cycles, of 60 MHz.
#pragma once

#include <cstdint>
#include <deque>
#include <stdexcept>
#include <string>
#include <vector>

namespace usb {

using Bytes = std::vector<uint8_t>;

// The gateware does what no device may do.
struct Violation : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// What a host does with the lines while it sends no packet.
enum class Lines { IDLE, SE0, J, K };

// A packet that the device has sent.
struct Sent {
    Bytes bytes;
    uint64_t begin, end;  // cycles: its SYNC begins, its end of packet is over
};

class Wire {
  public:
    virtual ~Wire() = default;

    uint64_t now = 0;  // cycles
    Lines lines = Lines::IDLE;
    bool vbus = true;

    virtual bool high_speed() const = 0;
    virtual bool pulled_up() const = 0;
    // The device takes part in the bus at high speed, after a chirp.
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
