// agg_connection_table, for two ports and one job: any registers are staged, and any commit is checked.
// It is good only if its connections are as they have to be. If good, it is installed, and a lookup
// finds what was staged. Each register is written once, in a known cycle.

`default_nettype none

module connection_table (
    input wire clk,
    input wire [55:0] value,  // to stage
    input wire [1:0] commit_ports,
    input wire [63:0] commit_chunk,
    input wire [31:0] commit_first,
    input wire [15:0] commit_epoch,
    input wire commit_partial,
    input wire [31:0] lookup_ip,
    input wire [23:0] lookup_qpn
);

  localparam integer STAGED = 6;  // steps: addresses, MAC addresses and connections of two ports
  localparam integer CHECKED = STAGED + 18;
  localparam integer INSTALLED = CHECKED + 4;

  reg [4:0] step = 5'd0;
  wire stages = step < STAGED;
  wire port = step >= 3;
  wire [4:0] kind = port ? step - 5'd3 : step;

  reg [63:0] ip;
  reg [15:0] ethernet;
  reg [111:0] connection;
  reg [146:0] commit_was;
  wire [146:0] commit = {commit_ports, commit_chunk, commit_first, commit_epoch, commit_partial};
  reg [55:0] lookup_was, lookup;
  wire checked, good, found, found_ip, found_job, found_port;
  wire [31:0] found_source;
  wire [ 7:0] found_ethernet;
  wire [23:0] found_psn;
  wire [ 2:0] found_mtu;
  wire [15:0] found_epoch;
  wire [63:0] unused_value;
  wire [1:0] receivers, behind;

  agg_connection_table #(
      .PORTS(2),
      .PORT_BITS(1)
  ) dut (
      .clk             (clk),
      .rst             (1'b0),
      .clear           (1'b0),
      .stage_address   (stages && kind == 0),
      .stage_mac       (stages && kind == 1),
      .stage_connection(stages && kind == 2),
      .stage_port      (port),
      .stage_value     (value),
      .reg_table       (1'b0),
      .reg_job         (1'b0),
      .reg_port        (1'b0),
      .reg_value       (unused_value),
      .check           (step >= STAGED),
      .commit_job      (1'b0),
      .commit_ports    (commit_ports),
      .commit_chunk    (commit_chunk),
      .commit_first    (commit_first),
      .commit_partial  (commit_partial),
      .commit_epoch    (commit_epoch),
      .checked         (checked),
      .good            (good),
      .install         (step == CHECKED && good),
      .remove          (1'b0),
      .remove_job      (1'b0),
      .remove_all      (step == 0),
      .lookup_ip       (lookup_ip),
      .lookup_qpn      (lookup_qpn),
      .found           (found),
      .found_ip        (found_ip),
      .found_job       (found_job),
      .found_port      (found_port),
      .found_source    (found_source),
      .found_ethernet  (found_ethernet),
      .found_psn       (found_psn),
      .found_mtu       (found_mtu),
      .found_epoch     (found_epoch),
      .receivers       (receivers),
      .behind          (behind)
  );

  // Of each port's connection
  wire [31:0] to_0 = ip[32*connection[48]+:32];
  wire [31:0] to_1 = ip[32*connection[104]+:32];
  reg [1:0] right, same_ip, same;
  reg size;
  integer p;

  always @* begin
    for (p = 0; p < 2; p = p + 1) begin
      right[p] = !commit_ports[p] || (connection[56*p+48+:8] < 2 &&
          commit_ports[connection[56*p+48]] && connection[56*p+:24] > 1);
      same_ip[p] = commit_ports[p] && (p == 0 ? to_0 : to_1) == lookup[55:24];
      same[p] = same_ip[p] && connection[56*p+:24] == lookup[23:0];
    end
    size = commit_chunk == 64 || commit_chunk == 128 || commit_chunk == 256 ||
        commit_chunk == 512 || commit_chunk == 1024;
  end

  wire collide = commit_ports == 2'b11 && to_0 == to_1 && connection[23:0] == connection[56+:24];
  wire is = same[1];  // the port whose connection is looked up

  always @(posedge clk) begin
    if (step != 5'd31) step <= step + 1;
    commit_was <= commit;
    lookup_was <= {lookup_ip, lookup_qpn};
    lookup <= lookup_was;
    if (stages && kind == 0) ip[32*port+:32] <= value[31:0];
    if (stages && kind == 1) ethernet[8*port+:8] <= value[55:48];
    if (stages && kind == 2) connection[56*port+:56] <= value;
  end

  always @* begin
    if (step > STAGED) assume (commit == commit_was);
    if (step == CHECKED) begin
      assert (checked);
      assert (good == (right == 2'b11 && !collide && size && commit_first == 0 && !commit_partial));
      cover (good && commit_ports == 2'b11);
    end
    if (step > INSTALLED + 1 && good) begin
      assert (found_ip == |same_ip && found == |same && same != 2'b11);
      if (found) begin
        assert (!found_job && found_port == is && found_source == ip[32*is+:32]);
        assert (found_ethernet == ethernet[8*is+:8] && found_psn == connection[56*is+24+:24]);
        assert (64 << found_mtu == commit_chunk && found_epoch == commit_epoch);
        assert (receivers[is] == connection[56*is+48]);
        assert (behind[is] == (ethernet[8*receivers[is]+:8] == 0));
      end
      cover (found && found_port && commit_ports == 2'b11);
    end
  end

endmodule

`default_nettype wire
