// Made by: hwgen -lanes 1 -workers 2 -format fp32 -result fp32 -sum tree -chunk 4 -window 4 -jobs 1 -shell stream -link 8 -prefix left -bundle
//
// The card's sizes, and access to its pins for the C++ in this folder.

#ifndef CARD_H
#define CARD_H

#include <cstdint>

#include "../regs.h"
#include "Vcard.h"

// A constant of the packet or the registers, from regs.h.
#define CARD(name) LEFT_##name

// Formats and sum, by their numbers in the registers FORMAT and SUM.
constexpr int FORMAT = 1;  // fp32
constexpr int RESULT_FORMAT = 1;  // fp32
constexpr int SUM = 1;  // tree
constexpr bool SATURATE = false;

constexpr int LANES = 1;
constexpr int PORTS = 2;
constexpr int CHUNK = 4;    // maximum, in elements
constexpr int WINDOW = 4;  // maximum, in chunks
constexpr int LATENCY = 29;
constexpr int LINK_BITS = 8;  // 0: no link
#define CARD_HAS_LINK
constexpr uint64_t CONFIG_HASH = 0x3b318ba417f65958ull;

#endif
