// Common parts of the cases of ../device_bench.cpp: comparisons that throw, and bytes to compare.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <map>
#include <random>
#include <stdexcept>
#include <string>

#include "device.h"

namespace {

using usb::Bytes;
using usb::Device;
using usb::Fault;
using usb::Pipe;
using usb::Result;

constexpr size_t PACKET = usb::PACKET;
constexpr bool HIGH_SPEED = PACKET == 512;

// Values that the device was built with.
std::string config_hash, serial;
Bytes ident;

struct Failure : std::runtime_error {
    using std::runtime_error::runtime_error;
};

std::string text(const Bytes &bytes) {
    std::string all;
    for (size_t i = 0; i < bytes.size() && i < 80; i++) {
        char byte[4];
        snprintf(byte, sizeof byte, "%02x ", bytes[i]);
        all += byte;
    }
    return all + "(" + std::to_string(bytes.size()) + ")";
}

void check(bool holds, const std::string &what) {
    if (!holds) throw Failure(what);
}

template <typename T>
void same(T got, T want, const std::string &what) {
    if (got != want) throw Failure(what + ": " + std::to_string(got) + ", not " + std::to_string(want));
}

void same(const Bytes &got, const Bytes &want, const std::string &what) {
    if (got != want) throw Failure(what + ":\n  got  " + text(got) + "\n  want " + text(want));
}

void same(Result got, Result want, const std::string &what) {
    static const char *names[] = {"done", "NAK", "NYET", "STALL", "no answer"};
    if (got != want) throw Failure(what + ": " + names[int(got)] + ", not " + names[int(want)]);
}

Bytes hex(const char *digits) {
    Bytes bytes;
    for (; *digits; digits++) {
        if (*digits == ' ') continue;
        char pair[3] = {digits[0], digits[1], 0};
        bytes.push_back(strtoul(pair, nullptr, 16));
        digits++;
    }
    return bytes;
}

// A string descriptor: UTF-16, lowest byte first.
Bytes string_descriptor(const std::string &letters) {
    Bytes bytes{uint8_t(2 + 2 * letters.size()), 3};
    for (char c : letters) {
        bytes.push_back(c);
        bytes.push_back(0);
    }
    return bytes;
}

// Bytes whose neighbourhood identifies each place.
Bytes pattern(size_t n, uint32_t seed) {
    std::mt19937 random(seed);
    Bytes bytes(n);
    for (uint8_t &b : bytes) b = random();
    return bytes;
}

void fresh(Device &d, const std::string &what);

void offer(Device &d, const Bytes &bytes) { d.to_host.insert(d.to_host.end(), bytes.begin(), bytes.end()); }

}  // namespace
