// A combinational block that forgets a branch, and so keeps its value.

`default_nettype none

module latch (
    input  wire enable,
    input  wire d,
    output wire q
);

  reg q_next;
  assign q = q_next;

  always @* begin
    if (enable) q_next = d;
  end

endmodule

`default_nettype wire
