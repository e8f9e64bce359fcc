// Made by: hwgen -lanes 2 -workers 3 -format fp32 -result fp32 -sum tree -chunk 8 -window 2 -jobs 2 -shell none -registers axil -parent
//
// The card's sizes, and access to its pins for the C++ in this folder.

#ifndef CARD_H
#define CARD_H

#include <cstdint>
#include <vector>

#include "../regs.h"
#include "Vcard.h"

// A constant of the packet or the registers, from regs.h.
#define CARD(name) AGG_##name

// Formats and sum, by their numbers in the registers FORMAT and SUM.
constexpr int FORMAT = 1;  // fp32
constexpr int RESULT_FORMAT = 1;  // fp32
constexpr int SUM = 1;  // tree
constexpr bool SATURATE = false;

constexpr int LANES = 2;
constexpr int PORTS = 3;
constexpr int CHUNK = 8;    // maximum, in elements
constexpr int WINDOW = 2;  // maximum, in chunks
constexpr int LATENCY = 43;
constexpr int LINK_BITS = 0;  // 0: no link
constexpr uint64_t CONFIG_HASH = 0xfd5c32008e9576b3ull;

// Pins of one port.
template <typename Model>
struct PinsOf {
    decltype((Model::s_axis_p0_tdata)) s_tdata;
    decltype((Model::s_axis_p0_tkeep)) s_tkeep;
    decltype((Model::s_axis_p0_tvalid)) s_tvalid;
    decltype((Model::s_axis_p0_tready)) s_tready;
    decltype((Model::s_axis_p0_tlast)) s_tlast;
    decltype((Model::s_axis_p0_tuser)) s_tuser;
    decltype((Model::m_axis_p0_tdata)) m_tdata;
    decltype((Model::m_axis_p0_tkeep)) m_tkeep;
    decltype((Model::m_axis_p0_tvalid)) m_tvalid;
    decltype((Model::m_axis_p0_tready)) m_tready;
    decltype((Model::m_axis_p0_tlast)) m_tlast;
    decltype((Model::m_axis_p0_tuser)) m_tuser;
};
using Pins = PinsOf<Vcard>;

// Returns the pins of port 0, port 1, ...
inline std::vector<Pins> pins_of(Vcard &top) {
    return {
        Pins{top.s_axis_p0_tdata, top.s_axis_p0_tkeep, top.s_axis_p0_tvalid,
             top.s_axis_p0_tready, top.s_axis_p0_tlast, top.s_axis_p0_tuser,
             top.m_axis_p0_tdata, top.m_axis_p0_tkeep, top.m_axis_p0_tvalid,
             top.m_axis_p0_tready, top.m_axis_p0_tlast, top.m_axis_p0_tuser},
        Pins{top.s_axis_p1_tdata, top.s_axis_p1_tkeep, top.s_axis_p1_tvalid,
             top.s_axis_p1_tready, top.s_axis_p1_tlast, top.s_axis_p1_tuser,
             top.m_axis_p1_tdata, top.m_axis_p1_tkeep, top.m_axis_p1_tvalid,
             top.m_axis_p1_tready, top.m_axis_p1_tlast, top.m_axis_p1_tuser},
        Pins{top.s_axis_p2_tdata, top.s_axis_p2_tkeep, top.s_axis_p2_tvalid,
             top.s_axis_p2_tready, top.s_axis_p2_tlast, top.s_axis_p2_tuser,
             top.m_axis_p2_tdata, top.m_axis_p2_tkeep, top.m_axis_p2_tvalid,
             top.m_axis_p2_tready, top.m_axis_p2_tlast, top.m_axis_p2_tuser},
    };
}

#endif
