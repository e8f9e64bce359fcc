// Access to the bytes of the card's pins.

#ifndef PINS_H
#define PINS_H

#include <cstddef>
#include <cstdint>

#include "verilated.h"

// Access to byte `at` of pins of any width, lowest byte first. Verilator represents up to 64
// bits as an integer, and more as words of 32 bits.
template <typename T>
uint8_t get_byte(const T &pins, size_t at) {
    return uint8_t(pins >> (8 * at));
}
template <std::size_t N>
uint8_t get_byte(const VlWide<N> &pins, size_t at) {
    return uint8_t(pins[at / 4] >> (8 * (at % 4)));
}
template <typename T>
void put_byte(T &pins, size_t at, uint8_t byte) {
    pins = T(pins & ~(T(0xff) << (8 * at))) | T(T(byte) << (8 * at));
}
template <std::size_t N>
void put_byte(VlWide<N> &pins, size_t at, uint8_t byte) {
    unsigned shift = 8 * (at % 4);
    pins[at / 4] = (pins[at / 4] & ~(0xffu << shift)) | uint32_t(byte) << shift;
}

#endif
