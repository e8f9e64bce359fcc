// Where the in-path switch takes frames from a MAC: a port's words beside the verdict on their
// frame, and its two addresses.
//
// s_axis is what agg_eth_receive gets, and s_verdict_* is its verdict, which comes DELAY cycles
// after a frame's last word. m_axis has the same words so much later that the verdict is there with
// the last of them. With it come:
//   pass   the frame is for another station: of the kind OTHER
//   learn  its source address is worth learning: the frame is neither damaged nor a runt nor
//          oversize, whoever it is for, and the address is not that of a group
//   to, from  the frame's addresses, the first byte lowest
//
// Latency: a word is at m_axis DELAY + 1 cycles after it was at s_axis. All outputs are registers.
// Throughput: a word a cycle, also if each is a frame. Not done here: back-pressure, queues.

`default_nettype none

module agg_switch_input #(
    parameter integer BYTES = 8,  // in a word: 1, 8 or 64
    parameter integer DELAY = 9   // of the verdict
) (
    input wire clk,
    input wire rst,

    input wire               s_axis_tvalid,
    input wire [8*BYTES-1:0] s_axis_tdata,
    input wire [  BYTES-1:0] s_axis_tkeep,
    input wire               s_axis_tlast,

    input wire       s_verdict_valid,
    input wire [2:0] s_verdict_kind,
    input wire [3:0] s_verdict_reason,

    output wire               m_axis_tvalid,
    output wire [8*BYTES-1:0] m_axis_tdata,
    output wire [  BYTES-1:0] m_axis_tkeep,
    output wire               m_axis_tlast,
    output wire               m_axis_pass,    // with tlast, as the rest
    output wire               m_axis_learn,
    output wire [       47:0] m_axis_to,
    output wire [       47:0] m_axis_from
);

  // agg_eth_judge
  localparam [2:0] DROP = 3'd0;
  localparam [2:0] OTHER = 3'd4;
  localparam [3:0] OVERSIZE = 4'd3;  // the last reason before those that look into the frame

  localparam integer HEAD_BYTES = 12;  // both addresses
  localparam integer STEPS = (HEAD_BYTES + BYTES - 1) / BYTES;

  wire word_valid, word_last;
  wire [8*BYTES-1:0] word_data;
  wire [  BYTES-1:0] word_keep;

  agg_switch_delay #(
      .WIDTH (9 * BYTES + 1),
      .CYCLES(DELAY)
  ) u_words (
      .clk      (clk),
      .rst      (rst),
      .in_valid (s_axis_tvalid),
      .in_word  ({s_axis_tlast, s_axis_tkeep, s_axis_tdata}),
      .out_valid(word_valid),
      .out_word ({word_last, word_keep, word_data})
  );

  reg [3:0] step_reg;  // number of the next word in its frame, at most STEPS
  reg valid_reg, last_reg, pass_reg, good_reg;
  reg [8*BYTES-1:0] data_reg;
  reg [BYTES-1:0] keep_reg;
  reg [8*HEAD_BYTES-1:0] head_reg;

  always @(posedge clk) begin
    valid_reg <= word_valid;
    data_reg  <= word_data;
    keep_reg  <= word_keep;
    last_reg  <= word_last;
    pass_reg  <= s_verdict_valid && s_verdict_kind == OTHER;
    good_reg  <= s_verdict_valid && (s_verdict_kind != DROP || s_verdict_reason > OVERSIZE);
    if (word_valid) begin
      if (word_last) step_reg <= 4'd0;
      else if (step_reg != STEPS[3:0]) step_reg <= step_reg + 1'b1;
    end
    if (rst) begin
      valid_reg <= 1'b0;
      step_reg  <= 4'd0;
    end
  end

  genvar b;
  generate
    for (b = 0; b < HEAD_BYTES; b = b + 1) begin : g_byte
      localparam integer STEP = b / BYTES;
      always @(posedge clk) begin
        if (word_valid && step_reg == STEP[3:0]) head_reg[8*b+:8] <= word_data[8*(b%BYTES)+:8];
      end
    end
  endgenerate

  assign m_axis_tvalid = valid_reg;
  assign m_axis_tdata  = data_reg;
  assign m_axis_tkeep  = keep_reg;
  assign m_axis_tlast  = last_reg;
  assign m_axis_pass   = pass_reg;
  assign m_axis_learn  = good_reg && !head_reg[48];
  assign m_axis_to     = head_reg[47:0];
  assign m_axis_from   = head_reg[95:48];

endmodule

`default_nettype wire
