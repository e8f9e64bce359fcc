// A board with a PHY, and a host at the other end of its cable. The PHY has its own clock, or
// takes one from the FPGA.
#pragma once

#include "fpga.h"
#include "host.h"
#include "phy.h"

namespace usb {

template <class Top> class UlpiBoardOf : public FpgaOf<Top> {
  public:
    explicit UlpiBoardOf(typename FpgaOf<Top>::Led led)
        : FpgaOf<Top>(std::move(led)), host(phy, [this](Pins &p) { cycle(p); }, [] {}) {
        power_up();
    }

    Phy phy;
    Host host;

    using FpgaOf<Top>::time;

  private:
    using FpgaOf<Top>::advance;
    using FpgaOf<Top>::demand;
    using FpgaOf<Top>::next;
    using FpgaOf<Top>::step;
    using FpgaOf<Top>::top;
    using FpgaOf<Top>::LIMIT;

    // A PHY's own clock, slightly off 60 MHz as every crystal is (USB allows 500 ppm), so that
    // its edges take all positions between those of the card's clock.
    static constexpr uint64_t PERIOD = 16'669'999;
    static constexpr uint64_t HALF = 8'333'333;  // delay of a PHY's outputs after its clock's edge
    static constexpr uint64_t START = 50 * US;   // delay of a PHY's clock after its reset
    static constexpr uint64_t PHY_RESET = MS;    // length of the board's reset of its PHY

    void power_up() {
        top.ulpi_dir = 1;
        top.ulpi_nxt = 0;
        top.ulpi_data = 0;
        if constexpr (Facts::CLOCK_FROM_PHY) top.ulpi_clk = 0;
        this->begin();
        demand(resets(), "the PHY is not in reset from the beginning");
        while (resets()) host.cycle();
        demand(!Facts::SUPPLY_PINS || this->supplied(), "the PHY leaves its reset without a supply");
        demand(time() > this->supplied() + PHY_RESET,
               "the PHY is reset for less than a millisecond once it has its supply");
    }

    // The PHY is held in reset.
    bool resets() const { return top.ulpi_rst == Facts::RESET_LEVEL; }

    // A cycle of the PHY: its outputs change, and the link has the rest of the cycle to respond.
    void cycle(Pins &pins) {
        advance(edge + HALF);
        move(pins);
        if constexpr (Facts::CLOCK_FROM_PHY) {
            if (resets()) hold();
            advance(edge + PERIOD);
            observe(pins);
            edge += PERIOD;
            top.ulpi_clk = 1;
            step(edge);
        } else {
            for (bool was = true; was || !top.ulpi_clk; step(next())) {
                was = top.ulpi_clk;
                observe(pins);
                demand(time() < edge + LIMIT, "the PHY has no clock");
            }
            edge = time();
        }
        pins.rst = resets();
    }

    // A PHY in reset gives no clock.
    void hold() {
        while (resets()) {
            demand(time() < edge + LIMIT, "the PHY is kept in reset");
            advance(time() + US);
        }
        edge = time() + START - PERIOD;
    }

    void move(const Pins &pins) {
        phy_drives = pins.driven;
        top.ulpi_dir = pins.dir;
        top.ulpi_nxt = pins.nxt;
        // Undriven pins may have any level.
        top.ulpi_data = pins.driven ? pins.data_in : noise();
        if constexpr (Facts::CLOCK_FROM_PHY) top.ulpi_clk = 0;
        step(time());
    }

    void observe(Pins &pins) const {
        pins.data_out = top.ulpi_data__out;
        pins.data_oe = top.ulpi_data__en;
        pins.stp = top.ulpi_stp;
    }

    void look_at_link() override {
        demand(top.ulpi_data__en == 0 || top.ulpi_data__en == 0xff, "some of the data pins are driven, and some not");
        demand(!(phy_drives && top.ulpi_data__en), "PHY and FPGA drive the data pins at once");
    }

    uint8_t noise() {
        random ^= random << 13, random ^= random >> 17, random ^= random << 5;
        return random;
    }

    uint64_t edge = 0;  // last edge of the PHY's clock
    uint32_t random = 1;
    bool phy_drives = false;
};

}  // namespace usb
