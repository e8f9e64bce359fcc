// The card's counters: 32 bits each, wrapping, in the order of the specification's table.
//
// Events are pulses: one count for each cycle in which an event is high. A shell with several
// receivers gives the number of its events in each cycle. refused_code selects the counter of a
// refusal. A shell refuses some packets before they reach the core; those share the counters.
// Latency: an event in cycle 0 is in its count from cycle 2 on. A clear in cycle 0 removes the
// events up to that cycle, and the counts are 0 in cycle 2. The value of index is at value three
// cycles later; index must be stable meanwhile.

`default_nettype none

module agg_counters #(
    parameter integer COUNT_BITS = 5,  // width of nonfinite_out and overflow
    parameter integer EVENT_BITS = 1,  // width of the shell's events that several receivers have
    parameter integer LINK       = 1   // 0: there is no link, and link_down ends a lease
) (
    input wire clk,
    input wire rst,
    input wire clear,

    // From the core
    input wire                  stored,
    input wire                  stored_ce,
    input wire                  stored_nonfinite,
    input wire                  asked,
    input wire                  finished,
    input wire                  chunk,
    input wire                  beat,
    input wire                  result,
    input wire                  replay,
    input wire                  status,
    input wire [COUNT_BITS-1:0] nonfinite_out,     // elements in this cycle
    input wire [COUNT_BITS-1:0] overflow,          // elements in this cycle
    input wire                  overdue,
    input wire                  partial,
    input wire                  evicts,
    input wire                  undecided,
    input wire                  stalled,
    input wire                  link_down,         // a level; its rising edge counts
    input wire                  refused,
    input wire [           7:0] refused_code,

    // From the shell
    input wire [EVENT_BITS-1:0] shell_frames,
    input wire                  shell_hunted,
    input wire                  shell_header_crc,
    input wire [EVENT_BITS-1:0] shell_bad_version,
    input wire [EVENT_BITS-1:0] shell_bad_kind,
    input wire [EVENT_BITS-1:0] shell_bad_length,

    input  wire [ 5:0] index,
    output wire [31:0] value
);

  `include "zwire.vh"

  reg [32*COUNTERS-1:0] counts_reg;
  reg [COUNTERS-1:0] events_next, events_reg;  // counts grow by one
  reg [COUNT_BITS-1:0] nonfinite_reg, overflow_reg;
  reg [EVENT_BITS-1:0] frames_reg;
  reg [EVENT_BITS:0] bad_version_reg, bad_kind_reg, bad_length_reg;
  reg link_down_reg;
  reg clear_reg;

  wire [31:0] nonfinite_count =
      counts_reg[32*COUNT_NONFINITE_OUT+:32] + {{32 - COUNT_BITS{1'b0}}, nonfinite_reg};
  wire [31:0] overflow_count =
      counts_reg[32*COUNT_OVERFLOW+:32] + {{32 - COUNT_BITS{1'b0}}, overflow_reg};
  wire [31:0] frames_count =
      counts_reg[32*COUNT_FRAMES+:32] + {{32 - EVENT_BITS{1'b0}}, frames_reg};
  wire [31:0] bad_version_count =
      counts_reg[32*COUNT_BAD_VERSION+:32] + {{31 - EVENT_BITS{1'b0}}, bad_version_reg};
  wire [31:0] bad_kind_count =
      counts_reg[32*COUNT_BAD_KIND+:32] + {{31 - EVENT_BITS{1'b0}}, bad_kind_reg};
  wire [31:0] bad_length_count =
      counts_reg[32*COUNT_BAD_LENGTH+:32] + {{31 - EVENT_BITS{1'b0}}, bad_length_reg};

  // Packets that a falling link cuts off are dropped, not refused.
  wire cut = LINK != 0 && link_down;
  wire refusal = refused && !cut;

  function automatic [EVENT_BITS:0] with_refusal;
    input [EVENT_BITS-1:0] shell;
    input [7:0] code;
    with_refusal = {1'b0, shell} + {{EVENT_BITS{1'b0}}, refusal && refused_code == code};
  endfunction

  always @* begin
    events_next                     = {COUNTERS{1'b0}};
    events_next[COUNT_STORED]       = stored;
    events_next[COUNT_ASKS]         = asked;
    events_next[COUNT_FINISHES]     = finished;
    events_next[COUNT_CHUNKS]       = chunk;
    events_next[COUNT_BEATS]        = beat;
    events_next[COUNT_RESULTS]      = result;
    events_next[COUNT_REPLAYS]      = replay;
    events_next[COUNT_STATUSES]     = status;
    events_next[COUNT_NONFINITE_IN] = stored_nonfinite;
    events_next[COUNT_UNDECIDED]    = undecided;
    events_next[COUNT_STALLED]      = stalled;
    events_next[COUNT_CE]           = stored_ce;
    events_next[COUNT_OVERDUE]      = overdue;
    events_next[COUNT_PARTIAL]      = partial;
    events_next[COUNT_EVICTIONS]    = evicts;
    events_next[COUNT_HUNTED]       = shell_hunted;
    events_next[COUNT_HEADER_CRC]   = shell_header_crc;
    events_next[COUNT_LINK_DOWN]    = cut && !link_down_reg;
    events_next[COUNT_BAD_JOB]      = refusal && refused_code == CODE_BAD_JOB;
    events_next[COUNT_BAD_EPOCH]    = refusal && refused_code == CODE_BAD_EPOCH;
    events_next[COUNT_BAD_RANK]     = refusal && refused_code == CODE_BAD_RANK;
    events_next[COUNT_BAD_FORMAT]   = refusal && refused_code == CODE_BAD_FORMAT;
    events_next[COUNT_LATE]         = refusal && refused_code == CODE_LATE;
    events_next[COUNT_EARLY]        = refusal && refused_code == CODE_EARLY;
    events_next[COUNT_NOT_READY]    = refusal && refused_code == CODE_NOT_READY;
    events_next[COUNT_DUPLICATE]    = refusal && refused_code == CODE_DUPLICATE;
    events_next[COUNT_PAYLOAD_CRC]  = refusal && refused_code == CODE_PAYLOAD_CRC;
    events_next[COUNT_EVICTED]      = refusal && refused_code == CODE_EVICTED;
  end

  integer i;

  always @(posedge clk) begin
    events_reg      <= events_next;
    nonfinite_reg   <= nonfinite_out;
    overflow_reg    <= overflow;
    frames_reg      <= shell_frames;
    bad_version_reg <= with_refusal(shell_bad_version, CODE_BAD_VERSION);
    bad_kind_reg    <= with_refusal(shell_bad_kind, CODE_BAD_KIND);
    bad_length_reg  <= with_refusal(shell_bad_length, CODE_BAD_LENGTH);
    link_down_reg   <= link_down || rst;
    clear_reg       <= clear || rst;
    for (i = 0; i < COUNTERS; i = i + 1) begin
      counts_reg[32*i+:32] <= counts_reg[32*i+:32] + {31'd0, events_reg[i]};
    end
    counts_reg[32*COUNT_FRAMES+:32]        <= frames_count;
    counts_reg[32*COUNT_BAD_VERSION+:32]   <= bad_version_count;
    counts_reg[32*COUNT_BAD_KIND+:32]      <= bad_kind_count;
    counts_reg[32*COUNT_BAD_LENGTH+:32]    <= bad_length_count;
    counts_reg[32*COUNT_NONFINITE_OUT+:32] <= nonfinite_count;
    counts_reg[32*COUNT_OVERFLOW+:32]      <= overflow_count;
    if (clear_reg) counts_reg <= {32 * COUNTERS{1'b0}};
  end

  // -- Read ---------------------------------------------------------------------------------------

  // First the count of this place in each group of eight, then that of the group.
  localparam integer GROUPS = (COUNTERS + 7) / 8;

  wire [256*GROUPS-1:0] counts = {{256 * GROUPS - 32 * COUNTERS{1'b0}}, counts_reg};
  reg [32*GROUPS-1:0] group_reg;
  reg [31:0] value_reg;
  reg [5:0] index_reg;
  integer g;

  always @(posedge clk) begin
    index_reg <= index;
    for (g = 0; g < GROUPS; g = g + 1) begin
      group_reg[32*g+:32] <= counts[{g[2:0], index_reg[2:0], 5'd0}+:32];
    end
    value_reg <= group_reg[{index_reg[5:3], 5'd0}+:32];
  end

  assign value = value_reg;

endmodule

`default_nettype wire
