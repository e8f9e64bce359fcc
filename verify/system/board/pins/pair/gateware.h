// D+ and D- at the pins of the gateware: of the USB device by itself, or with a card.
#pragma once

#include "pair.h"

namespace usb {

using Model = Pair;
constexpr size_t PACKET = 64;  // of bulk, the largest

template <class Top> void drive(Top &top, const Model::Pins &pins) {
    top.usb_d_p_in = pins.d_p_in;
    top.usb_d_n_in = pins.d_n_in;
}

template <class Top> void read(const Top &top, Model::Pins &pins) {
    pins.d_p_out = top.usb_d_p_out;
    pins.d_n_out = top.usb_d_n_out;
    pins.oe = top.usb_d_oe;
    pins.pull_up = top.usb_pull_up;
}

}  // namespace usb
