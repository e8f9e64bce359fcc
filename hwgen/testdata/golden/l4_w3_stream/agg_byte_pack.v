// Made by: hwgen -lanes 4 -workers 3 -format fp32 -result fp32 -sum tree -chunk 32 -window 2
//      -jobs 1 -shell stream -link 32

// Packs steps of bytes into the words of a link, without gaps between them.
//
// Up to STEP bytes go in each cycle, LINK_BYTES come out. A word that is not full waits for more, unless
// flush says that nothing follows for now: then it leaves with the bytes it has. One word a cycle; a
// byte leaves two cycles after it came at the earliest. A reset also withdraws the word at m_axis.

`default_nettype none

module agg_byte_pack #(
    parameter integer STEP = 4,  // most bytes in a step: 4 or 8, at least LINK_BYTES
    parameter integer LINK_BYTES = 4  // 1, 2, 4 or 8
) (
    input wire clk,
    input wire rst,

    input wire [8*STEP-1:0] s_step_data,  // first byte in bits 7:0; bytes beyond s_step_bytes are 0
    input wire [3:0] s_step_bytes,
    input wire s_step_valid,
    output wire s_step_ready,
    input wire s_step_idle,  // flush: no step is there, and none is coming soon

    output wire [8*LINK_BYTES-1:0] m_axis_tdata,
    output wire [  LINK_BYTES-1:0] m_axis_tkeep,   // contiguous from bit 0, at least one byte
    output wire                    m_axis_tvalid,
    input  wire                    m_axis_tready
);

  generate
    if (STEP != 4 && STEP != 8) begin : g_step
      ERROR_a_step_has_4_or_8_bytes error ();
    end
    if (LINK_BYTES != 1 && LINK_BYTES != 2 && LINK_BYTES != 4 && LINK_BYTES != 8) begin : g_link
      ERROR_a_link_has_1_2_4_or_8_bytes error ();
    end
    if (LINK_BYTES > STEP) begin : g_narrow
      ERROR_a_step_has_at_least_the_bytes_of_the_link error ();
    end
  endgenerate

  // Room for three steps: at two, one more fits in, and one leaves in the meantime.
  localparam integer HOLD = 8 * 3 * STEP;

  reg [HOLD-1:0] hold_reg;  // bytes that wait; above them zeros
  reg [4:0] count_reg;  // how many
  reg [8*LINK_BYTES-1:0] word_reg;
  reg [LINK_BYTES-1:0] keep_reg;
  reg valid_reg;

  wire free = !valid_reg || m_axis_tready;
  wire full = count_reg >= LINK_BYTES[4:0];
  wire leave = free && (full || (s_step_idle && count_reg != 5'd0));
  wire enter = s_step_valid && s_step_ready;

  wire [HOLD-1:0] hold_left = leave ? hold_reg >> 8 * LINK_BYTES : hold_reg;
  wire [4:0] count_left = !leave ? count_reg : full ? count_reg - LINK_BYTES[4:0] : 5'd0;
  wire [HOLD-1:0] entering = {{HOLD - 8 * STEP{1'b0}}, s_step_data} << {count_left, 3'd0};

  assign s_step_ready  = count_reg <= 2 * STEP[4:0];
  assign m_axis_tdata  = word_reg;
  assign m_axis_tkeep  = keep_reg;
  assign m_axis_tvalid = valid_reg;

  always @(posedge clk) begin
    hold_reg  <= enter ? hold_left | entering : hold_left;
    count_reg <= enter ? count_left + {1'b0, s_step_bytes} : count_left;
    if (free) begin
      valid_reg <= leave;
      word_reg  <= hold_reg[8*LINK_BYTES-1:0];
      keep_reg  <= full ? {LINK_BYTES{1'b1}} : ~({LINK_BYTES{1'b1}} << count_reg);
    end
    if (rst) begin
      hold_reg  <= {HOLD{1'b0}};
      count_reg <= 5'd0;
      valid_reg <= 1'b0;
    end
  end

endmodule

`default_nettype wire
