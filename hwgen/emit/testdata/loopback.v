// Stands in for a card's top when the virtual card's harness is tested: what comes from the host
// goes back to it a cycle later. A beat is counted for every word.

`default_nettype none

module agg_top (
    input  wire        clk,
    input  wire        rst,
    input  wire        link_up,
    input  wire [31:0] link_rx_tdata,
    input  wire [ 3:0] link_rx_tkeep,
    input  wire        link_rx_tvalid,
    output wire        link_rx_tready,
    output reg  [31:0] link_tx_tdata,
    output reg  [ 3:0] link_tx_tkeep,
    output reg         link_tx_tvalid,
    input  wire        link_tx_tready,
    output wire        beat_strobe
);

  assign link_rx_tready = link_tx_tready || !link_tx_tvalid;
  assign beat_strobe = link_rx_tvalid && link_rx_tready;

  always @(posedge clk) begin
    if (link_rx_tready) begin
      link_tx_tdata  <= link_rx_tdata;
      link_tx_tkeep  <= link_rx_tkeep;
      link_tx_tvalid <= link_rx_tvalid;
    end
    if (rst || !link_up) link_tx_tvalid <= 1'b0;
  end

endmodule

`default_nettype wire
