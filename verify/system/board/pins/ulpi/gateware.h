// A ULPI PHY at the pins of the gateware: of the USB device by itself, or with a card.
#pragma once

#include "phy.h"

namespace usb {

using Model = Phy;
constexpr size_t PACKET = 512;  // of bulk, the largest

template <class Top> void drive(Top &top, const Model::Pins &pins) {
    top.ulpi_data_in = pins.data_in;
    top.ulpi_dir = pins.dir;
    top.ulpi_nxt = pins.nxt;
}

template <class Top> void read(const Top &top, Model::Pins &pins) {
    pins.data_out = top.ulpi_data_out;
    pins.data_oe = top.ulpi_data_oe;
    pins.stp = top.ulpi_stp;
    pins.rst = top.ulpi_rst;
}

}  // namespace usb
