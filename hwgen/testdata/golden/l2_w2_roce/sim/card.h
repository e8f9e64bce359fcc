// Made by: hwgen -lanes 2 -workers 2 -format fp32 -result fp32 -sum tree -chunk 64 -window 2 -jobs 1 -shell roce -link 64 -ethernet 1 -mac 02:54:52:42:00:01 -ip 192.168.84.66 -udp-port 21570
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
constexpr int PORTS = 2;
constexpr int CHUNK = 64;    // maximum, in elements
constexpr int WINDOW = 2;  // maximum, in chunks
constexpr int LATENCY = 29;
constexpr int LINK_BITS = 64;  // 0: no link
#define CARD_HAS_ETHERNET

constexpr int ETHERNET = 1;  // ports
constexpr uint64_t OWN_MAC = 0x025452420001;
constexpr uint32_t OWN_IP = 0xc0a85442;
constexpr uint16_t OWN_PORT = 21570;
constexpr uint64_t CONFIG_HASH = 0xa68600b69fc72e23ull;

// Pins of one Ethernet port.
template <typename Model>
struct EthernetPinsOf {
    decltype((Model::eth_rx_p0_tdata)) rx_tdata;
    decltype((Model::eth_rx_p0_tkeep)) rx_tkeep;
    decltype((Model::eth_rx_p0_tvalid)) rx_tvalid;
    decltype((Model::eth_rx_p0_tlast)) rx_tlast;
    decltype((Model::eth_rx_p0_tuser)) rx_tuser;
    decltype((Model::eth_tx_p0_tdata)) tx_tdata;
    decltype((Model::eth_tx_p0_tkeep)) tx_tkeep;
    decltype((Model::eth_tx_p0_tvalid)) tx_tvalid;
    decltype((Model::eth_tx_p0_tready)) tx_tready;
    decltype((Model::eth_tx_p0_tlast)) tx_tlast;
};
using EthernetPins = EthernetPinsOf<Vcard>;

// Returns the pins of Ethernet port 0, port 1, ...
inline std::vector<EthernetPins> ethernet_pins_of(Vcard &top) {
    return {
        EthernetPins{top.eth_rx_p0_tdata, top.eth_rx_p0_tkeep, top.eth_rx_p0_tvalid,
                     top.eth_rx_p0_tlast, top.eth_rx_p0_tuser, top.eth_tx_p0_tdata,
                     top.eth_tx_p0_tkeep, top.eth_tx_p0_tvalid, top.eth_tx_p0_tready,
                     top.eth_tx_p0_tlast},
    };
}

#endif
