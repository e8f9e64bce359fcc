// FTDI's FT2232H in synchronous FIFO mode at both of its ends: the bus, by the data sheet
// (DS_FT232H, section 4.4; the two chips have the same bus), and the buffers between that
// and USB. A cycle of the bus at a time.
//
// It fails a gateware that drives the bus together with the chip, or turns it round at
// once; that lets RD# fall before OE# has been low at an edge; that writes without
// driving, or lets WR# fall where TXE# was high. Now and then it has nothing, or no room, for
// some cycles, as a chip whose buffers USB fills and empties.
#pragma once

#include <cstdint>
#include <deque>
#include <random>

#include "wire.h"

namespace usb {

class Chip {
  public:
    struct Pins {
        bool rxf_n = true, txe_n = true;  // the chip's
        uint8_t data_in = 0;
        bool rd_n = true, wr_n = true, oe_n = true, siwu_n = true, driven = false;  // the FPGA's
        uint8_t data_out = 0;
    };

    static constexpr size_t BUFFER = 4096;  // bytes, each way

    bool synchronous = false;             // and so with a clock
    bool asked = false;                   // SIWU# fell: what is in to_host goes at once
    std::deque<uint8_t> to_card, to_host;  // its buffers
    uint64_t moved = 0;                   // bytes over the bus

    size_t room() const { return BUFFER - to_card.size(); }

    // Without a host, or after its request.
    void empty() { to_card.clear(), to_host.clear(), asked = false; }

    // A rising edge of CLKOUT, at which the pins are so; then what the chip shows from then on.
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
    // What no FPGA may do.
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

    // A byte went over the bus; after some the chip rests.
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
