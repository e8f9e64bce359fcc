// Protocol constants, to be included inside a module body.
// Printed from the tables in driver/wire; change them, then run: go test ./hwgen/tables -update

/* verilator lint_off UNUSEDPARAM */  // no module uses them all

// Header: place and width of each field, in bits
localparam integer HDR_VERSION_LSB = 0;
localparam integer HDR_VERSION_BITS = 4;
localparam integer HDR_KIND_LSB = 4;
localparam integer HDR_KIND_BITS = 4;
localparam integer HDR_FLAGS_LSB = 8;
localparam integer HDR_FLAGS_BITS = 8;
localparam integer HDR_JOB_LSB = 16;
localparam integer HDR_JOB_BITS = 8;
localparam integer HDR_FORMAT_LSB = 24;
localparam integer HDR_FORMAT_BITS = 8;
localparam integer HDR_EPOCH_LSB = 32;
localparam integer HDR_EPOCH_BITS = 16;
localparam integer HDR_RANK_LSB = 48;
localparam integer HDR_RANK_BITS = 8;
localparam integer HDR_CODE_LSB = 56;
localparam integer HDR_CODE_BITS = 8;
localparam integer HDR_VID_LSB = 64;
localparam integer HDR_VID_BITS = 32;
localparam integer HDR_LENGTH_LSB = 96;
localparam integer HDR_LENGTH_BITS = 16;
localparam integer HDR_MASK_LSB = 112;
localparam integer HDR_MASK_BITS = 64;
localparam integer HDR_RECEIVERS_LSB = 176;
localparam integer HDR_RECEIVERS_BITS = 64;
localparam integer HDR_BASE_BYTES = 14;  // every kind
localparam integer HDR_MASK_BYTES = 22;  // with a mask
localparam integer HDR_MAX_BYTES = 30;  // with a mask and receivers

// Kinds
localparam [3:0] VERSION = 4'd2;  // of the protocol
localparam [3:0] KIND_DATA = 4'd1;
localparam [3:0] KIND_ASK = 4'd2;
localparam [3:0] KIND_FINISH = 4'd3;
localparam [3:0] KIND_REGREAD = 4'd4;
localparam [3:0] KIND_REGWRITE = 4'd5;
localparam [3:0] KIND_RESULT = 4'd8;
localparam [3:0] KIND_REPLAY = 4'd9;
localparam [3:0] KIND_STATUS = 4'd10;
localparam [3:0] KIND_REPLY = 4'd11;

// Flags and ECN
localparam [7:0] FLAG_PARTIAL = 8'd4;
localparam [7:0] FLAG_NONFINITE = 8'd8;
localparam [1:0] ECN_NOT_ECT = 2'd0;
localparam [1:0] ECN_ECT1 = 2'd1;
localparam [1:0] ECN_ECT0 = 2'd2;
localparam [1:0] ECN_CE = 2'd3;

// Codes
localparam [7:0] CODE_DONE = 8'd0;
localparam [7:0] CODE_WAIT = 8'd1;
localparam [7:0] CODE_SEND = 8'd2;
localparam [7:0] CODE_BUSY = 8'd3;
localparam [7:0] CODE_OVERDUE = 8'd4;
localparam [7:0] CODE_BAD_VERSION = 8'd16;
localparam [7:0] CODE_BAD_KIND = 8'd17;
localparam [7:0] CODE_BAD_JOB = 8'd18;
localparam [7:0] CODE_BAD_EPOCH = 8'd19;
localparam [7:0] CODE_BAD_RANK = 8'd20;
localparam [7:0] CODE_BAD_FORMAT = 8'd21;
localparam [7:0] CODE_BAD_LENGTH = 8'd22;
localparam [7:0] CODE_LATE = 8'd23;
localparam [7:0] CODE_EARLY = 8'd24;
localparam [7:0] CODE_NOT_READY = 8'd25;
localparam [7:0] CODE_DUPLICATE = 8'd26;
localparam [7:0] CODE_PAYLOAD_CRC = 8'd27;
localparam [7:0] CODE_EVICTED = 8'd28;
localparam [7:0] CODE_BAD_ADDRESS = 8'd32;
localparam [7:0] CODE_READ_ONLY = 8'd33;
localparam [7:0] CODE_BAD_PORTS = 8'd34;
localparam [7:0] CODE_BAD_CHUNK = 8'd35;
localparam [7:0] CODE_BAD_WINDOW = 8'd36;
localparam [7:0] CODE_STALE_EPOCH = 8'd37;
localparam [7:0] CODE_EPOCH_IN_USE = 8'd38;
localparam [7:0] CODE_NO_SLOTS = 8'd39;
localparam [7:0] CODE_BAD_DEADLINE = 8'd40;
localparam [7:0] CODE_BAD_MEMBER = 8'd41;
localparam [7:0] CODE_BAD_PARENT = 8'd42;
localparam [7:0] CODE_BAD_RANKS = 8'd43;
localparam [7:0] CODE_BAD_CONNECTION = 8'd44;

// Formats, sums, shells
localparam [7:0] FORMAT_FP32 = 8'd1;
localparam [7:0] FORMAT_BF16 = 8'd2;
localparam [7:0] FORMAT_FP16 = 8'd3;
localparam [7:0] FORMAT_FP8E4M3 = 8'd4;
localparam [7:0] FORMAT_FP8E5M2 = 8'd5;
localparam [7:0] FORMAT_INT32 = 8'd6;
localparam [7:0] SUM_TREE = 8'd1;
localparam [7:0] SUM_FUSED = 8'd2;
localparam [7:0] SUM_EXACT = 8'd3;
localparam [7:0] SUM_MAX = 8'd4;
localparam [7:0] SHELL_NONE = 8'd0;
localparam [7:0] SHELL_STREAM = 8'd1;
localparam [7:0] SHELL_UDP = 8'd2;
localparam [7:0] SHELL_ROCE = 8'd3;

// Byte-stream link
localparam integer SYNC = 32'h425254a5;  // first byte on the link in the lowest byte
localparam [15:0] CRC_POLY = 16'h1021;
localparam [15:0] CRC_INIT = 16'hffff;
localparam integer MAX_FRAME_BYTES = 32'hfff;

// Registers: byte addresses
localparam [63:0] MAGIC = 64'h5952545542495254;
localparam integer REG_MAGIC = 0;
localparam integer REG_VERSION = 8;
localparam integer REG_CONFIG_HASH = 16;
localparam integer REG_LANES = 24;
localparam integer REG_PORTS = 32;
localparam integer REG_FORMAT = 40;
localparam integer REG_SUM = 48;
localparam integer REG_SHELL = 56;
localparam integer REG_CHUNK = 64;
localparam integer REG_WINDOW = 72;
localparam integer REG_JOBS = 80;
localparam integer REG_LINK = 88;
localparam integer REG_LATENCY = 96;
localparam integer REG_OWNER = 32'h100;
localparam integer REG_RELEASE = 32'h108;
localparam integer REG_RESET = 32'h110;
localparam integer REG_CYCLES = 32'h118;
localparam integer REG_LAST_CODE = 32'h120;
localparam integer REG_JOB_TOKEN = 32'h200;
localparam integer REG_JOB_PORTS = 32'h208;
localparam integer REG_JOB_CHUNK = 32'h210;
localparam integer REG_JOB_WINDOW = 32'h218;
localparam integer REG_JOB_DEADLINE = 32'h220;
localparam integer REG_JOB_COMMIT = 32'h228;
localparam integer REG_JOB_ABORT = 32'h230;
localparam integer REG_JOB_STATE = 32'h1000;
localparam integer REG_JOB_FINISHED = 32'h1008;
localparam integer REG_JOB_MEMBERS = 32'h1010;
localparam integer REG_JOB_SLOTS = 32'h1018;
localparam integer REG_JOB_NONFINITE_IN = 32'h1020;
localparam integer REG_JOB_NONFINITE_OUT = 32'h1028;
localparam integer REG_JOB_OVERFLOW = 32'h1030;
localparam integer REG_JOB_FIRST_IN = 32'h1038;
localparam integer REG_JOB_FIRST_OUT = 32'h1040;
localparam integer REG_JOB_FIRST_OVERFLOW = 32'h1048;
localparam integer REG_JOB_EVICTED = 32'h1050;
localparam integer REG_COUNTERS = 32'h400;  // first counter; the next is 8 further
localparam integer REG_JOBS_BASE = 32'h1000;  // first register of job 0
localparam integer REG_JOB_LAG = 32'h20000;  // first count of job 0, rank 0
localparam integer REG_JOB_STRIDE = 32'h100;  // from one job's registers to the next one's

// Counters: index from REG_COUNTERS, in registers
localparam integer COUNT_FRAMES = 0;
localparam integer COUNT_STORED = 1;
localparam integer COUNT_ASKS = 2;
localparam integer COUNT_FINISHES = 3;
localparam integer COUNT_CHUNKS = 4;
localparam integer COUNT_BEATS = 5;
localparam integer COUNT_RESULTS = 6;
localparam integer COUNT_REPLAYS = 7;
localparam integer COUNT_STATUSES = 8;
localparam integer COUNT_NONFINITE_IN = 9;
localparam integer COUNT_NONFINITE_OUT = 10;
localparam integer COUNT_OVERFLOW = 11;
localparam integer COUNT_UNDECIDED = 12;
localparam integer COUNT_STALLED = 13;
localparam integer COUNT_CE = 14;
localparam integer COUNT_OVERDUE = 15;
localparam integer COUNT_PARTIAL = 16;
localparam integer COUNT_EVICTIONS = 17;
localparam integer COUNT_HUNTED = 18;
localparam integer COUNT_HEADER_CRC = 19;
localparam integer COUNT_LINK_DOWN = 20;
localparam integer COUNT_BAD_VERSION = 21;
localparam integer COUNT_BAD_KIND = 22;
localparam integer COUNT_BAD_JOB = 23;
localparam integer COUNT_BAD_EPOCH = 24;
localparam integer COUNT_BAD_RANK = 25;
localparam integer COUNT_BAD_FORMAT = 26;
localparam integer COUNT_BAD_LENGTH = 27;
localparam integer COUNT_LATE = 28;
localparam integer COUNT_EARLY = 29;
localparam integer COUNT_NOT_READY = 30;
localparam integer COUNT_DUPLICATE = 31;
localparam integer COUNT_PAYLOAD_CRC = 32;
localparam integer COUNT_EVICTED = 33;
localparam integer COUNTERS = 34;  // how many there are
/* verilator lint_on UNUSEDPARAM */
