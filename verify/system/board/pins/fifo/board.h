// A board with a FIFO bridge of FTDI's at the pins of its FPGA. The chip's clock is its own,
// and runs while a host has the chip in synchronous FIFO mode.
#pragma once

#include "fifo/chip.h"
#include "fpga.h"

namespace usb {

// The chip with its time, in cycles of 60 MHz.
class Bus {
  public:
    Chip chip;
    std::function<void()> cycle;
    uint64_t transactions = 0;  // packets on USB

    uint64_t now() const { return cycles; }

    void pass(uint64_t n) {
        for (; n; n--, cycles++) cycle();
    }

  private:
    uint64_t cycles = 0;
};

template <class Top> class FifoBoardOf : public FpgaOf<Top> {
  public:
    explicit FifoBoardOf(typename FpgaOf<Top>::Led led) : FpgaOf<Top>(std::move(led)) {
        host.cycle = [this] { cycle(); };
        top.fifo_clk = 0;
        hide();
        this->begin();
        // A host is slower than the FPGA's reset, except for the parts that wait for the chip's clock.
        while (time() < POWER_UP) host.pass(1);
    }

    Bus host;

    using FpgaOf<Top>::time;

  private:
    using FpgaOf<Top>::advance;
    using FpgaOf<Top>::demand;
    using FpgaOf<Top>::step;
    using FpgaOf<Top>::top;

    // The chip's own clock, a little beside 60 MHz as every crystal is (USB allows 500 ppm), so that all
    // places of its edges between those of the card's clock come to pass; t2; t4, t5, t6 and t11; t7, t9, t12 and t14.
    static constexpr uint64_t PERIOD = 16'669'999;
    static constexpr uint64_t HIGH = 8'333'333;
    static constexpr uint64_t SHOWN = 9'000'000;
    static constexpr uint64_t SET_UP = 7'500'000;
    static constexpr uint64_t POWER_UP = 2 * MS;

    // One cycle. The chip's pins have random levels from the edge until their delay is over.
    void cycle() {
        if (!host.chip.synchronous) {
            stop();
            return;
        }
        move(noise() & 1, noise() & 1, noise());
        advance(edge + HIGH);
        top.fifo_clk = 0;
        step(edge + HIGH);
        advance(edge + SHOWN);
        move(pins.rxf_n, pins.txe_n, pins.data_in);
        advance(edge + PERIOD - SET_UP);
        read();
        Chip::Pins set_up = pins;
        advance(edge + PERIOD);
        read();
        demand(same(set_up), "what the chip takes changes within its set-up time");
        edge += PERIOD;
        host.chip.edge(pins);
        top.fifo_clk = 1;
        ran = true;
        step(edge);
    }

    // The chip in another mode: it has no clock, and its pins may have any level.
    void stop() {
        if (top.fifo_clk) {
            top.fifo_clk = 0;
            step(time());
        }
        hide();
        edge += PERIOD;
        advance(edge);
    }

    void hide() { pins.rxf_n = pins.txe_n = true; }

    void move(bool rxf_n, bool txe_n, uint8_t data) {
        top.fifo_rxf_n = rxf_n;
        top.fifo_txe_n = txe_n;
        // Undriven data pins may have any level.
        top.fifo_data = pins.oe_n ? noise() : data;
        step(time());
    }

    void read() {
        pins.rd_n = top.fifo_rd_n;
        pins.wr_n = top.fifo_wr_n;
        pins.oe_n = top.fifo_oe_n;
        pins.siwu_n = top.fifo_siwu_n;
        pins.driven = top.fifo_data__en;
        pins.data_out = top.fifo_data__out;
    }

    bool same(const Chip::Pins &was) const {
        return was.rd_n == pins.rd_n && was.wr_n == pins.wr_n && was.oe_n == pins.oe_n && was.driven == pins.driven &&
               (pins.wr_n || was.data_out == pins.data_out);
    }

    void look_at_link() override {
        demand(top.fifo_data__en == 0 || top.fifo_data__en == 0xff, "some of the data pins are driven, and some not");
        demand(top.fifo_oe_n || !top.fifo_data__en, "chip and FPGA drive the data pins at once");
        demand(ran || (top.fifo_rd_n && top.fifo_wr_n && top.fifo_oe_n && top.fifo_siwu_n && !top.fifo_data__en),
               "the pins are not quiet before the chip has a clock");
    }

    uint8_t noise() {
        random ^= random << 13, random ^= random >> 17, random ^= random << 5;
        return random;
    }

    Chip::Pins pins;
    bool ran = false;   // the chip has had a clock
    uint64_t edge = 0;  // last edge of the chip's clock
    uint32_t random = 1;
};

}  // namespace usb
