// FTDI's FT2232H in synchronous FIFO mode, at both ends. The bus follows the data sheet
// (DS_FT232H, section 4.4; both chips have the same bus), a cycle at a time. Buffers connect it
// to USB.
//
// The model fails a gateware that drives the bus together with the chip, or turns it around
// without a pause. It also fails RD# low before OE# was low at an edge, writes without driving
// the bus, and WR# low while TXE# was high. At random times it has no data, or no room, for some
// cycles, as USB fills and empties its buffers.
#pragma once

#include <cstdint>
#include <deque>
#include <random>

#include "wire.h"

namespace usb {

class Chip {
  public:
    struct Pins {
        bool rxf_n = true, txe_n = true;  // driven by the chip
        uint8_t data_in = 0;
        bool rd_n = true, wr_n = true, oe_n = true, siwu_n = true, driven = false;  // driven by the FPGA
        uint8_t data_out = 0;
    };

    static constexpr size_t BUFFER = 4096;  // bytes, in each direction

    bool synchronous = false;             // in this mode the chip has a clock
    bool asked = false;                   // SIWU# fell: to_host must be sent at once
    std::deque<uint8_t> to_card, to_host;  // its buffers
    uint64_t moved = 0;                   // bytes over the bus

    size_t room() const { return BUFFER - to_card.size(); }

    // Clears the buffers, without a host or at its request.
    void empty() { to_card.clear(), to_host.clear(), asked = false; }

    // A rising edge of CLKOUT with these pins; afterwards they have the chip's new outputs.
    void edge(Pins &pins) {
        judge(pins);
        if (!pins.rd_n && !pins.rxf_n) {
            to_card.pop_front();
            passed();
        }
        if (!pins.wr_n && !pins.txe_n) {
            to_host.push_back(pins.data_out);
            passed();
        }
        asked |= !pins.siwu_n && before.siwu_n;
        txe_earlier = before.txe_n;
        before = pins;
        if (rest) rest--;
        pins.rxf_n = rest || to_card.empty();
        pins.txe_n = rest || to_host.size() == BUFFER;
        pins.data_in = pins.rxf_n ? uint8_t(random()) : to_card.front();
    }

  private:
    // Violations by the FPGA.
    void judge(const Pins &pins) {
        cycle++;
        demand(pins.oe_n || !pins.driven, "both drive the bus");
        if (pins.driven) {
            demand(cycle - chip_drove > 2, "the FPGA drives the bus before the chip has let go of it");
            drove = cycle;
        }
        if (!pins.oe_n) {
            demand(cycle - drove > 1, "OE# falls before the FPGA has let go of the bus");
            chip_drove = cycle;
        }
        demand(pins.rd_n || (!pins.oe_n && !before.oe_n), "RD# falls before the bus is turned");
        demand(pins.wr_n || pins.driven, "nobody drives what is written");
        demand(pins.wr_n || !before.wr_n || !txe_earlier, "WR# falls where TXE# was high");
    }

    static void demand(bool holds, const char *what) {
        if (!holds) throw Violation(std::string("FIFO: ") + what);
    }

    // A byte went over the bus. After a random number of bytes the chip pauses.
    void passed() {
        moved++;
        if (--until_rest == 0) {
            rest = 1 + random() % 20;
            until_rest = 1 + random() % 600;
        }
    }

    Pins before;
    bool txe_earlier = true;
    uint64_t cycle = 100, drove = 0, chip_drove = 0;
    unsigned rest = 0, until_rest = 100;
    std::mt19937 random{1};
};

}  // namespace usb
