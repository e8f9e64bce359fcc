// Protocol constants of cards under RoCEv2, to be included inside a module body.
// Printed from the tables in driver/wire; change them, then run: go test ./hwgen/tables -update

/* verilator lint_off UNUSEDPARAM */  // no module uses them all

// Registers of shell roce: byte addresses
localparam integer REG_JOB_DISCONNECT = 32'h250;
localparam integer REG_MEMBER_CONNECTION = 32'h2000;
localparam integer REG_NEIGHBOUR_ADDRESS = 32'h2400;
localparam integer REG_NEIGHBOUR_MAC = 32'h2408;
localparam integer REG_JOB_CONNECTION = 32'h48000;
localparam integer REG_CONNECTION_STRIDE = 8;  // from one port's connection to the next one's
localparam integer REG_CONNECTION_TABLE_STRIDE = 32'h200;  // from one job's connections to the next one's
localparam integer REG_NEIGHBOUR_STRIDE = 16;  // from one neighbour's registers to the next one's

// Counters of shell roce: index from the first of them, in registers
localparam integer COUNT_ROCE_HEADER = 0;
localparam integer COUNT_ROCE_ICRC = 1;
localparam integer COUNT_ROCE_SOURCE = 2;
localparam integer COUNT_ROCE_OPCODE = 3;
localparam integer COUNT_ROCE_LENGTH = 4;
localparam integer COUNT_ROCE_HIDDEN = 5;
localparam integer COUNT_RELEASED_EARLY = 6;
localparam integer COUNT_RELAYED = 7;
localparam integer REG_CONNECTION_COUNTERS = 32'h5a0;  // first of them
localparam integer CONNECTION_COUNTERS = 8;  // how many there are
/* verilator lint_on UNUSEDPARAM */
