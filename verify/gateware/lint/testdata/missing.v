// An instance of a module that is nowhere.

`default_nettype none

module missing (
    input  wire d,
    output wire q
);

  nowhere u_nowhere (
      .d(d),
      .q(q)
  );

endmodule

`default_nettype wire
