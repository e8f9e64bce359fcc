// Checks a ones' complement sum over bytes of a frame: the checksum of an IPv4 header, of a UDP
// datagram with its pseudo-header, or of an ICMP message.
//
// All bytes that do not belong to the sum must be zero. s_extra is a number to add beside the first
// step's bytes: the part of a pseudo-header that is in no byte of the frame. Bytes with even numbers
// are the high bytes of their words; a step of one byte names its number's lowest bit, s_odd.
//
// good: the sum is 0xffff, counted as ones' complement does, so nothing is damaged. A sum of zeros
// alone is not good. Latency: good belongs to all steps of up to four cycles ago, from the latest
// first one. Throughput: a step a cycle.

`default_nettype none

module agg_eth_sum #(
    parameter integer BYTES = 8  // in a step: 1, 8 or 64
) (
    input wire clk,

    input wire               s_valid,
    input wire               s_first,
    input wire               s_odd,
    input wire [8*BYTES-1:0] s_data,
    input wire [       15:0] s_extra,

    output wire good
);

  // A sum of four words has 18 bits. All of a step and the extra number have 22. A frame has less
  // than 2^16 words, so all of it has 32.
  localparam integer GROUPS = BYTES > 8 ? BYTES / 8 : 1;

  wire [18*GROUPS-1:0] groups;

  genvar g;
  generate
    if (BYTES == 1) begin : g_byte
      assign groups = s_odd ? {10'd0, s_data} : {2'd0, s_data, 8'd0};
    end else if (BYTES == 8 || BYTES == 64) begin : g_words
      wire unused = s_odd;
      for (g = 0; g < GROUPS; g = g + 1) begin : g_group
        wire [63:0] four = s_data[64*g+:64];
        assign groups[18*g+:18] = {2'd0, four[7:0], four[15:8]} + {2'd0, four[23:16], four[31:24]} +
            {2'd0, four[39:32], four[47:40]} + {2'd0, four[55:48], four[63:56]};
      end
    end else begin : g_bytes
      ERROR_a_step_has_1_8_or_64_bytes error ();
    end
  endgenerate

  // Registers of cycle 1: groups; 2: step; 3: sum; 4: good
  reg [2:1] valid_reg;
  reg [2:1] first_reg;
  reg [18*GROUPS-1:0] groups_reg;
  reg [15:0] extra_reg;
  reg [21:0] step_reg;
  reg [31:0] sum_reg;
  reg good_reg;

  reg [21:0] step;
  integer n;

  always @* begin
    step = {6'd0, extra_reg};
    for (n = 0; n < GROUPS; n = n + 1) step = step + {4'd0, groups_reg[18*n+:18]};
  end

  always @(posedge clk) begin
    valid_reg  <= {valid_reg[1], s_valid};
    first_reg  <= {first_reg[1], s_first};
    extra_reg  <= s_extra;
    groups_reg <= groups;
    step_reg   <= step;
    if (valid_reg[2]) sum_reg <= (first_reg[2] ? 32'd0 : sum_reg) + {10'd0, step_reg};
    // Both halves add up to 0xffff. A frame has less than 2^15 words, so they cannot add up to twice
    // that.
    good_reg <= sum_reg[31:16] == ~sum_reg[15:0];
  end

  assign good = good_reg;

endmodule

`default_nettype wire
