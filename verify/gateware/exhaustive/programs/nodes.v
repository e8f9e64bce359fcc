// Many nodes beside one another: node i adds a and {b, i}, and y holds all sums.
//
// Not done here: what is compared with what. That is for the program around it.

`default_nettype none

module nodes #(
    parameter integer EXP  = 8,
    parameter integer FRAC = 7,
    parameter integer LOG2 = 6   // of the number of nodes
) (
    input  wire                            clk,
    input  wire [              EXP+FRAC:0] a,
    input  wire [         EXP+FRAC-LOG2:0] b,
    output wire [((EXP+FRAC+1)<<LOG2)-1:0] y
);

  localparam integer WIDTH = EXP + FRAC + 1;

  reg [WIDTH-1:0] a_reg;
  reg [WIDTH-LOG2-1:0] b_reg;

  always @(posedge clk) begin
    a_reg <= a;
    b_reg <= b;
  end

  genvar i;
  generate
    for (i = 0; i < (1 << LOG2); i = i + 1) begin : g_node
      localparam [LOG2-1:0] INDEX = i;

      agg_fp_add #(
          .EXP (EXP),
          .FRAC(FRAC)
      ) u_add (
          .clk(clk),
          .a  (a_reg),
          .b  ({b_reg, INDEX}),
          .y  (y[i*WIDTH+:WIDTH])
      );
    end
  endgenerate

endmodule

`default_nettype wire
