// Protocol constants of cards on a network, to be included inside a module body.
// Printed from the tables in driver/wire; change them, then run: go test ./hwgen/tables -update

/* verilator lint_off UNUSEDPARAM */  // no module uses them all

// Registers on a network: byte addresses
localparam integer REG_LEASE = 32'h128;
localparam integer REG_SOURCE = 32'h130;
localparam integer REG_SOURCE_MAC = 32'h138;
localparam integer REG_CARD_ADDRESS = 32'h140;
localparam integer REG_CARD_MAC = 32'h148;
localparam integer REG_MEMBER_ADDRESS = 32'h800;
localparam integer REG_MEMBER_MAC = 32'h808;
localparam integer REG_JOB_ADDRESS = 32'h40000;
localparam integer REG_JOB_MAC = 32'h40008;
localparam integer REG_MEMBER_STRIDE = 16;  // from one port's registers to the next one's
localparam integer REG_TABLE_STRIDE = 32'h400;  // from one job's entries to the next one's
localparam [63:0] MAX_LEASE = 64'h10000000000;  // of LEASE
localparam [15:0] NETWORK_PORT = 16'h5442;  // the UDP port of a card, unless it is given another

// Counters on a network: index from the first of them, in registers
localparam integer COUNT_SHORT = 0;
localparam integer COUNT_DATAGRAM_CRC = 1;
localparam integer COUNT_STRANGER = 2;
localparam integer COUNT_LEASE = 3;
localparam integer COUNT_DROPPED = 4;
localparam integer COUNT_PASSED = 5;
localparam integer COUNT_FCS = 6;
localparam integer COUNT_RUNT = 7;
localparam integer COUNT_OVERSIZE = 8;
localparam integer COUNT_IP_HEADER = 9;
localparam integer COUNT_IP_CHECKSUM = 10;
localparam integer COUNT_FRAGMENT = 11;
localparam integer COUNT_IP_LENGTH = 12;
localparam integer COUNT_IP_ADDRESS = 13;
localparam integer COUNT_PROTOCOL = 14;
localparam integer COUNT_UDP_LENGTH = 15;
localparam integer COUNT_CHECKSUM = 16;
localparam integer COUNT_UDP_PORT = 17;
localparam integer REG_NETWORK_COUNTERS = 32'h510;  // first of them
localparam integer NETWORK_COUNTERS = 18;  // how many there are
/* verilator lint_on UNUSEDPARAM */
