// agg_window_multiply for Lattice ECP5: the same module as one multiplier block and its registers.
//
// Yosys maps a multiplication to a block but leaves the registers outside, which halves its speed.
// The portable module of this name documents the function.

`default_nettype none

module agg_window_multiply #(
    parameter integer A = 12,  // in bits
    parameter integer B = 16
) (
    input  wire           clk,
    input  wire [  A-1:0] a,
    input  wire [  B-1:0] b,
    output wire [A+B-1:0] y
);

  wire [17:0] a_padded = {{18 - A{1'b0}}, a};
  wire [17:0] b_padded = {{18 - B{1'b0}}, b};
  wire [35:0] product;

  MULT18X18D #(
      .REG_INPUTA_CLK  ("CLK0"),
      .REG_INPUTB_CLK  ("CLK0"),
      .REG_PIPELINE_CLK("NONE"),
      .REG_OUTPUT_CLK  ("CLK0")
  ) u_multiplier (
      .CLK0(clk),
      .CE0(1'b1),
      .RST0(1'b0),
      .SIGNEDA(1'b0),
      .SIGNEDB(1'b0),
      .SOURCEA(1'b0),
      .SOURCEB(1'b0),
      .A0(a_padded[0]),
      .A1(a_padded[1]),
      .A2(a_padded[2]),
      .A3(a_padded[3]),
      .A4(a_padded[4]),
      .A5(a_padded[5]),
      .A6(a_padded[6]),
      .A7(a_padded[7]),
      .A8(a_padded[8]),
      .A9(a_padded[9]),
      .A10(a_padded[10]),
      .A11(a_padded[11]),
      .A12(a_padded[12]),
      .A13(a_padded[13]),
      .A14(a_padded[14]),
      .A15(a_padded[15]),
      .A16(a_padded[16]),
      .A17(a_padded[17]),
      .B0(b_padded[0]),
      .B1(b_padded[1]),
      .B2(b_padded[2]),
      .B3(b_padded[3]),
      .B4(b_padded[4]),
      .B5(b_padded[5]),
      .B6(b_padded[6]),
      .B7(b_padded[7]),
      .B8(b_padded[8]),
      .B9(b_padded[9]),
      .B10(b_padded[10]),
      .B11(b_padded[11]),
      .B12(b_padded[12]),
      .B13(b_padded[13]),
      .B14(b_padded[14]),
      .B15(b_padded[15]),
      .B16(b_padded[16]),
      .B17(b_padded[17]),
      .C0(1'b0),
      .C1(1'b0),
      .C2(1'b0),
      .C3(1'b0),
      .C4(1'b0),
      .C5(1'b0),
      .C6(1'b0),
      .C7(1'b0),
      .C8(1'b0),
      .C9(1'b0),
      .C10(1'b0),
      .C11(1'b0),
      .C12(1'b0),
      .C13(1'b0),
      .C14(1'b0),
      .C15(1'b0),
      .C16(1'b0),
      .C17(1'b0),
      .P0(product[0]),
      .P1(product[1]),
      .P2(product[2]),
      .P3(product[3]),
      .P4(product[4]),
      .P5(product[5]),
      .P6(product[6]),
      .P7(product[7]),
      .P8(product[8]),
      .P9(product[9]),
      .P10(product[10]),
      .P11(product[11]),
      .P12(product[12]),
      .P13(product[13]),
      .P14(product[14]),
      .P15(product[15]),
      .P16(product[16]),
      .P17(product[17]),
      .P18(product[18]),
      .P19(product[19]),
      .P20(product[20]),
      .P21(product[21]),
      .P22(product[22]),
      .P23(product[23]),
      .P24(product[24]),
      .P25(product[25]),
      .P26(product[26]),
      .P27(product[27]),
      .P28(product[28]),
      .P29(product[29]),
      .P30(product[30]),
      .P31(product[31]),
      .P32(product[32]),
      .P33(product[33]),
      .P34(product[34]),
      .P35(product[35])
  );

  assign y = product[A+B-1:0];

endmodule

`default_nettype wire
