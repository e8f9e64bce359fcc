// Made by: hwgen -lanes 4 -workers 3 -format fp32 -result fp32 -sum tree -chunk 32 -window 2 -jobs 1 -shell stream -link 32
//
// The card's sizes, and access to its pins for the C++ in this folder.

#ifndef CARD_H
#define CARD_H

#include <cstdint>

#include "../regs.h"
#include "Vcard.h"

// A constant of the packet or the registers, from regs.h.
#define CARD(name) AGG_##name

// Formats and sum, by their numbers in the registers FORMAT and SUM.
constexpr int FORMAT = 1;  // fp32
constexpr int RESULT_FORMAT = 1;  // fp32
constexpr int SUM = 1;  // tree
constexpr bool SATURATE = false;

constexpr int LANES = 4;
constexpr int PORTS = 3;
constexpr int CHUNK = 32;    // maximum, in elements
constexpr int WINDOW = 2;  // maximum, in chunks
constexpr int LATENCY = 43;
constexpr int LINK_BITS = 32;  // 0: no link
#define CARD_HAS_LINK
constexpr uint64_t CONFIG_HASH = 0x468c6bfe82f63dc0ull;

#endif
