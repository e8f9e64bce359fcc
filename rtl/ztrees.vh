// Protocol constants of trees of cards, to be included inside a module body.
// Printed from the tables in driver/wire; change them, then run: go test ./hwgen/tables -update

/* verilator lint_off UNUSEDPARAM */  // no module uses them all

// Registers of trees of cards: byte addresses
localparam integer REG_PARENT_ADDRESS = 32'h150;
localparam integer REG_PARENT_MAC = 32'h158;
localparam integer REG_JOB_PARENT = 32'h238;
localparam integer REG_JOB_REPEAT = 32'h240;
localparam integer REG_TREE_RANKS = 32'h248;
localparam integer REG_MEMBER_RANKS = 32'hc00;
localparam integer REG_JOB_UP = 32'h1058;
localparam integer REG_JOB_TREE = 32'h1060;
localparam integer REG_JOB_UP_REFUSAL = 32'h1068;
localparam integer REG_JOB_RANKS = 32'h44000;
localparam integer REG_RANKS_STRIDE = 8;  // from one port's MEMBER_RANKS or JOB_RANKS to the next one's
localparam integer REG_RANKS_TABLE_STRIDE = 32'h200;  // from one job's JOB_RANKS to the next one's
localparam integer MAX_REPEAT = 32'h1000000;  // of JOB_REPEAT
localparam [15:0] SHELL_PARENT = 16'h100;  // the bit of SHELL: the card has an up port

// Counters of the up port: index from the first of them, in registers
localparam integer COUNT_UP_SENT = 0;
localparam integer COUNT_UP_REPEATS = 1;
localparam integer COUNT_UP_TAKEN = 2;
localparam integer COUNT_UP_DROPPED = 3;
localparam integer COUNT_UP_REFUSED = 4;
localparam integer REG_UP_COUNTERS = 32'h600;  // first of them, for every shell
localparam integer UP_COUNTERS = 5;  // how many there are
/* verilator lint_on UNUSEDPARAM */
