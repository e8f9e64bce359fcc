// Counts one job's NaNs, infinities and overflows: contributions with a NaN or an infinity,
// elements of sums that are one, and elements that overflowed. Keeps the VID of the first of each,
// so that a host can find the element.
//
// The counts saturate. They are cleared when the job is set up, not when it ends.
//
// Latency: a packet stored in cycle 0 and a sum written in cycle 0, with its numbers in cycle 1,
// are counted from cycle 2 on. Not done here: the card's counters (agg_counters).

`default_nettype none

module agg_job_counts #(
    parameter integer COUNT_BITS = 5  // width of a number of lanes
) (
    input wire clk,
    input wire rst,
    input wire clear, // the job is set up

    // A packet is committed:
    input wire        stored_nonfinite,  // it is stored, and has a NaN or an infinity
    input wire [31:0] vid,
    input wire [ 7:0] rank,

    // A beat of a sum is written; in the next cycle, the number of its elements that
    input wire                  wr_en,
    input wire [          31:0] wr_vid,
    input wire [COUNT_BITS-1:0] nonfinite,  // are NaN or infinite
    input wire [COUNT_BITS-1:0] overflow,   // overflowed

    // Register values
    output wire [31:0] nonfinite_in,
    output wire [31:0] nonfinite_out,
    output wire [31:0] overflows,
    output wire [63:0] first_in,
    output wire [63:0] first_out,
    output wire [63:0] first_overflow
);

  reg clear_reg, written_reg;
  reg stored_reg;
  reg [31:0] stored_vid_reg, sum_vid_reg;
  reg [7:0] stored_rank_reg;

  // A count is full once it has wrapped.
  reg [31:0] in_reg, out_reg, overflow_reg;
  reg in_full_reg, out_full_reg, overflow_full_reg;
  reg in_any_reg, out_any_reg, overflow_any_reg;
  reg [31:0] in_vid_reg, out_vid_reg, overflow_vid_reg;
  reg [7:0] in_rank_reg;

  wire [32:0] in_next = {1'b0, in_reg} + 33'd1;
  wire [COUNT_BITS-1:0] more_out = written_reg ? nonfinite : {COUNT_BITS{1'b0}};
  wire [COUNT_BITS-1:0] more_overflow = written_reg ? overflow : {COUNT_BITS{1'b0}};
  wire [32:0] out_next = {1'b0, out_reg} + {{33 - COUNT_BITS{1'b0}}, more_out};
  wire [32:0] overflow_next = {1'b0, overflow_reg} + {{33 - COUNT_BITS{1'b0}}, more_overflow};

  always @(posedge clk) begin
    clear_reg       <= clear || rst;
    stored_reg      <= stored_nonfinite;
    stored_vid_reg  <= vid;
    stored_rank_reg <= rank;
    written_reg     <= wr_en;
    sum_vid_reg     <= wr_vid;

    if (stored_reg) in_reg <= in_next[31:0];
    out_reg      <= out_next[31:0];
    overflow_reg <= overflow_next[31:0];
    if (stored_reg && in_next[32]) in_full_reg <= 1'b1;
    if (out_next[32]) out_full_reg <= 1'b1;
    if (overflow_next[32]) overflow_full_reg <= 1'b1;

    if (stored_reg && !in_any_reg) begin
      in_vid_reg  <= stored_vid_reg;
      in_rank_reg <= stored_rank_reg;
    end
    if (!out_any_reg) out_vid_reg <= sum_vid_reg;
    if (!overflow_any_reg) overflow_vid_reg <= sum_vid_reg;
    if (stored_reg) in_any_reg <= 1'b1;
    if (more_out != {COUNT_BITS{1'b0}}) out_any_reg <= 1'b1;
    if (more_overflow != {COUNT_BITS{1'b0}}) overflow_any_reg <= 1'b1;

    if (clear_reg) begin
      stored_reg        <= 1'b0;
      in_reg            <= 32'd0;
      out_reg           <= 32'd0;
      overflow_reg      <= 32'd0;
      in_full_reg       <= 1'b0;
      out_full_reg      <= 1'b0;
      overflow_full_reg <= 1'b0;
      in_any_reg        <= 1'b0;
      out_any_reg       <= 1'b0;
      overflow_any_reg  <= 1'b0;
    end
  end

  assign nonfinite_in   = in_reg | {32{in_full_reg}};
  assign nonfinite_out  = out_reg | {32{out_full_reg}};
  assign overflows      = overflow_reg | {32{overflow_full_reg}};
  assign first_in       = in_any_reg ? {1'b1, 23'd0, in_rank_reg, in_vid_reg} : 64'd0;
  assign first_out      = out_any_reg ? {1'b1, 31'd0, out_vid_reg} : 64'd0;
  assign first_overflow = overflow_any_reg ? {1'b1, 31'd0, overflow_vid_reg} : 64'd0;

endmodule

`default_nettype wire
