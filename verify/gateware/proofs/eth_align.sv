// agg_eth_align: every word leaves once, in order and in time, with the bytes of its two beats.

`default_nettype none

module eth_align #(
    parameter integer BYTES = 2,
    parameter integer SHIFT = 1
) (
    input wire               clk,
    input wire               s_valid,
    input wire               s_last,
    input wire [8*BYTES-1:0] s_data,
    input wire               s_word,
    input wire               s_word_last,
    input wire [  BYTES-1:0] s_word_keep
);

  wire m_axis_tvalid, m_axis_tlast;
  wire [8*BYTES-1:0] m_axis_tdata;
  wire [BYTES-1:0] m_axis_tkeep;

  reg rst = 1'b1;

  agg_eth_align #(
      .BYTES(BYTES),
      .SHIFT(SHIFT)
  ) dut (
      .clk          (clk),
      .rst          (rst),
      .s_valid      (s_valid),
      .s_last       (s_last),
      .s_data       (s_data),
      .s_word       (s_word),
      .s_word_last  (s_word_last),
      .s_word_keep  (s_word_keep),
      .m_axis_tvalid(m_axis_tvalid),
      .m_axis_tdata (m_axis_tdata),
      .m_axis_tkeep (m_axis_tkeep),
      .m_axis_tlast (m_axis_tlast)
  );

  // Of the watched word: its beat, and whether its frame has a next beat, which came.
  (* anyconst *)
  reg [3:0] watched;
  reg [3:0] came = 4'd0;
  reg [3:0] left = 4'd0;
  reg [8*BYTES-1:0] beat, next;
  reg [BYTES-1:0] keep;
  reg last, ended;
  reg seen = 1'b0;
  reg followed = 1'b0;
  reg [1:0] due = 2'd0;  // cycles until it leaves; 0: not known yet, or it has left
  wire [8*BYTES-1:0] low = {8 * BYTES{1'b1}} >> 8 * SHIFT;  // bytes out of the word's own beat
  wire takes = !rst && s_valid && s_word && came == watched && !seen;

  always @(posedge clk) begin
    rst <= 1'b0;
    if (!rst && s_valid && s_word) came <= came + 1'b1;
    if (!rst && m_axis_tvalid) left <= left + 1'b1;
    due <= due == 2'd0 ? 2'd0 : due - 1'b1;
    if (takes) begin
      {seen, ended, last} <= {1'b1, s_last, s_word_last};
      beat <= s_data;
      keep <= s_word_keep;
      if (SHIFT == 0) due <= 2'd1;
      else if (s_last) due <= 2'd2;
    end
    if (!rst && seen && !ended && !followed && s_valid) begin
      followed <= 1'b1;
      next <= s_data;
      if (SHIFT != 0) due <= 2'd1;
    end
  end

  always @* begin
    if (seen && due == 2'd1) begin
      assert (m_axis_tvalid && left == watched);
      assert (m_axis_tlast == last && m_axis_tkeep == keep);
      assert ((m_axis_tdata & low) == beat >> 8 * SHIFT);
      if (!ended && SHIFT != 0)
        assert (m_axis_tdata >> 8 * (BYTES - SHIFT) == (next & ~({8 * BYTES{1'b1}} << 8 * SHIFT)));
    end else if (!rst) assert (!(m_axis_tvalid && left == watched));
    cover (seen && due == 2'd1 && left == 4'd3 && followed);
    cover (seen && due == 2'd1 && left == 4'd3 && ended);
  end

endmodule

`default_nettype wire
