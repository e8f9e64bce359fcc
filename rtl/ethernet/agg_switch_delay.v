// Delays a stream of words by CYCLES, in a small memory instead of registers in a row:
// agg_switch_input keeps a frame's words so until its verdict comes.
//
// The word that is written in a cycle is read CYCLES - 1 cycles later, just before its place is
// written again. out_* are registers. A reset drops the words that are under way.

`default_nettype none

module agg_switch_delay #(
    parameter integer WIDTH  = 73,
    parameter integer CYCLES = 9
) (
    input wire clk,
    input wire rst,

    input  wire             in_valid,
    input  wire [WIDTH-1:0] in_word,
    output wire             out_valid,
    output wire [WIDTH-1:0] out_word
);

  localparam integer PLACES = CYCLES - 1;
  localparam integer PLACE_BITS = $clog2(PLACES);
  localparam [PLACE_BITS-1:0] LAST = PLACES[PLACE_BITS-1:0] - 1'b1;

  generate
    if (CYCLES < 3) begin : g_cycles
      ERROR_a_shorter_delay_needs_no_memory error ();
    end
  endgenerate

  (* ram_style = "distributed" *) reg [WIDTH-1:0] words[0:PLACES-1];
  reg [PLACE_BITS-1:0] place_reg;
  reg [CYCLES-1:0] valid_reg;  // newest in bit 0
  reg [WIDTH-1:0] word_reg;

  always @(posedge clk) begin
    words[place_reg] <= in_word;
    word_reg         <= words[place_reg];
    place_reg        <= place_reg == LAST ? {PLACE_BITS{1'b0}} : place_reg + 1'b1;
    valid_reg        <= {valid_reg[CYCLES-2:0], in_valid};
    if (rst) begin
      place_reg <= {PLACE_BITS{1'b0}};
      valid_reg <= {CYCLES{1'b0}};
    end
  end

  assign out_valid = valid_reg[CYCLES-1];
  assign out_word  = word_reg;

`ifdef FORMAL
  reg was_reset = 1'b0;
  reg [CYCLES-1:0] valids;
  reg [CYCLES*WIDTH-1:0] line;  // newest in the lowest bits
  wire [WIDTH-1:0] oldest = line[CYCLES*WIDTH-1-:WIDTH];

  always @(posedge clk) begin
    valids <= {valids, in_valid};
    line   <= {line, in_word};
    if (rst) begin
      was_reset <= 1'b1;
      valids <= 0;
    end
  end

  always @* begin
    if (was_reset) begin
      assert (place_reg <= LAST);
      assert (out_valid == valids[CYCLES-1]);
      if (out_valid) assert (out_word == oldest);
      cover (out_valid && place_reg == 1);
    end
  end
`endif

endmodule

`default_nettype wire
