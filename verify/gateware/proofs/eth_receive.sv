// agg_eth_receive: each frame has one verdict, in its cycle, and the words before it are its own.
//
// A watched frame alone has payload bytes that are not zero. Contents, checksums and the meaning of
// a verdict are left to the bench.

`default_nettype none

module eth_receive #(
    parameter integer BYTES = 64
) (
    input wire clk,
    input wire s_axis_tvalid,
    input wire [8*BYTES-1:0] s_axis_tdata,
    input wire [BYTES-1:0] s_axis_tkeep,
    input wire s_axis_tlast,
    input wire s_axis_tuser
);

  localparam integer LATENCY = 9;

  reg rst = 1'b1;
  reg cleared = 1'b0;
  wire m_axis_tvalid, m_verdict_valid;
  wire [8*BYTES-1:0] m_axis_tdata;

  agg_eth_receive #(
      .BYTES(BYTES)
  ) dut (
      .clk          (clk),
      .rst          (rst),
      .own_mac      (48'h02_00_00_00_00_01),
      .own_ip       (32'hc0_00_02_01),
      .own_port     (16'h5442),
      .s_axis_tvalid(s_axis_tvalid),
      .s_axis_tdata (s_axis_tdata),
      .s_axis_tkeep (s_axis_tkeep),
      .s_axis_tlast (s_axis_tlast),
      .s_axis_tuser (s_axis_tuser),

      .m_axis_tvalid  (m_axis_tvalid),
      .m_axis_tdata   (m_axis_tdata),
      .m_axis_tkeep   (),
      .m_axis_tlast   (),
      .m_verdict_valid(m_verdict_valid),

      .m_verdict_kind  (),
      .m_verdict_reason(),
      .m_verdict_mac   (),
      .m_verdict_ip    (),
      .m_verdict_port  (),
      .m_verdict_ecn   (),
      .m_verdict_header(),
      .m_verdict_bytes (),
      .m_verdict_echo  ()
  );

  (* anyconst *)
  reg [3:0] watched;
  reg [3:0] frames = 4'd0;  // that ended
  reg [3:0] verdicts = 4'd0;
  reg [7:0] beat = 8'd0;  // of the frame that arrives
  reg [LATENCY-1:0] ends = 0;  // a frame ended one cycle ago, and more
  integer n;

  always @(posedge clk) begin
    rst <= 1'b0;
    cleared <= !rst;
    ends <= {ends[LATENCY-2:0], !rst && s_axis_tvalid && s_axis_tlast};
    if (!rst && s_axis_tvalid) begin
      frames <= frames + s_axis_tlast;
      beat   <= s_axis_tlast ? 8'd0 : beat + 1'b1;
    end
    if (!rst && m_verdict_valid) verdicts <= verdicts + 1'b1;
  end

  always @* begin
    assume (!rst || !s_axis_tvalid);
    for (n = 0; n < BYTES; n = n + 1)
    if (beat * BYTES + n >= 56 && frames != watched) assume (s_axis_tdata[8*n+:8] == 0);

    if (!rst) begin
      assert (m_verdict_valid == ends[LATENCY-1]);
      if (m_axis_tvalid && m_axis_tdata != 0) assert (verdicts == watched);
    end
    cover (cleared && m_axis_tvalid && m_axis_tdata != 0 && verdicts == 4'd2);
  end

endmodule

`default_nettype wire
