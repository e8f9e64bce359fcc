// Judges a frame by the rules for registered connections: ROCE.md, section 3. The first check that
// fails decides, in this order:
//
//   NONE                  a wrong FCS, less than 60 bytes, or more than the largest frame
//   DROPPED roce_hidden   a VLAN tag or IP options, UDP, and a registered connection's IPv4 address
//   NONE                  no frame of a registered connection; ACKNOWLEDGE and CNP
//   DROPPED roce_header   IP version, length, checksum, fragments; UDP's length; missing bytes; less
//                         than base transport header and ICRC; version of the transport header
//           roce_icrc
//           roce_source   not the member's IPv4 address, or not its Ethernet port
//           roce_opcode   no data packet
//           roce_length   a payload of another size than the MTU, or a pad count
//   TAKEN
//
// Kinds and reasons have the numbers of the parameters below; reason is 0 unless kind is DROPPED.
// agg_eth_judge drops and counts what is NONE for its FCS or its size.
//
// Times are counted from the cycle of the frame's last beat, which is 0. The inputs are taken in
// cycles 2 (head, code), 4 (end_*), 5 (found_*) and 8 (*_good). lookup_* is there in cycle 3, so the table
// has two cycles. The verdict is there in cycle 9. Throughput: a verdict a cycle.
//
// Not done here: whether the job is set up, and the slot rules (the core).

`default_nettype none

module agg_roce_judge #(
    parameter integer JOB_BITS  = 1,
    parameter integer PORT_BITS = 2
) (
    input wire clk,
    input wire rst,

    input wire [  7:0] ethernet_port,  // where the frames came: a constant
    input wire [431:0] head,           // the frame's first 54 bytes, the first lowest
    input wire [  1:0] code,           // header: 54, 58, 70 or 74 bytes, by the opcode

    // The connections: the answer belongs to the lookup two cycles before
    output wire [         31:0] lookup_ip,       // first byte highest
    output wire [         23:0] lookup_qpn,
    input  wire                 found,           // a connection has both
    input  wire                 found_ip,        // one at least has this address
    input  wire [ JOB_BITS-1:0] found_job,
    input  wire [PORT_BITS-1:0] found_port,      // the member's port of the core
    input  wire [         31:0] found_source,    // the member's address
    input  wire [          7:0] found_ethernet,  // the member's Ethernet port
    input  wire [         23:0] found_psn,       // the first
    input  wire [          2:0] found_mtu,       // log2 of its bytes / 256
    input  wire [         15:0] found_epoch,     // of its registration

    input wire end_valid,  // a frame ended
    input wire end_bad,    // FCS
    input wire end_runt,
    input wire end_large,
    input wire end_whole,  // it has all bytes of its IP packet

    input wire ip_good,
    input wire icrc_good,

    output wire                 m_verdict_valid,
    output wire [          1:0] m_verdict_kind,
    output wire [          2:0] m_verdict_reason,
    // Of a frame that is taken
    output wire [          1:0] m_verdict_code,    // header: 54, 58, 70 or 74 bytes
    output wire [          1:0] m_verdict_ecn,
    output wire [          2:0] m_verdict_mtu,
    output wire [         15:0] m_verdict_epoch,
    output wire [         23:0] m_verdict_offset,  // PSN less the first one
    output wire [ JOB_BITS-1:0] m_verdict_job,
    output wire [PORT_BITS-1:0] m_verdict_port
);

  localparam [1:0] NONE = 2'd0;
  localparam [1:0] TAKEN = 2'd1;
  localparam [1:0] DROPPED = 2'd2;
  localparam [2:0] NO_REASON = 3'd0;
  localparam [2:0] HEADER = 3'd1;
  localparam [2:0] ICRC = 3'd2;
  localparam [2:0] SOURCE = 3'd3;
  localparam [2:0] OPCODE = 3'd4;
  localparam [2:0] LENGTH = 3'd5;
  localparam [2:0] HIDDEN = 3'd6;

  localparam [15:0] IPV4 = 16'h0800;
  localparam [15:0] VLAN = 16'h8100;
  localparam [15:0] SERVICE_VLAN = 16'h88a8;
  localparam [7:0] UDP = 8'd17;
  localparam [15:0] ROCE_PORT = 16'd4791;
  localparam [7:0] ACKNOWLEDGE = 8'h11;
  localparam [7:0] CNP = 8'h81;

  // -- Fields: the first byte in the highest bits -------------------------------------------------

  wire [431:0] wire_order;
  wire unused = &{1'b0, wire_order};  // bytes that no check reads

  genvar i;
  generate
    for (i = 0; i < 54; i = i + 1) begin : g_byte
      assign wire_order[8*(53-i)+:8] = head[8*i+:8];
    end
  endgenerate

  // width bytes from byte place on: wire_order[8*(54-place-width)+:8*width]
  wire [15:0] ethertype = wire_order[8*40+:16];
  wire [7:0] version = wire_order[8*39+:8];  // and the length of the IP header, in words
  wire [1:0] ecn = wire_order[8*38+:2];
  wire [15:0] total = wire_order[8*36+:16];
  wire [15:0] fragment = wire_order[8*32+:16];
  wire [7:0] protocol = wire_order[8*30+:8];
  wire [31:0] source = wire_order[8*24+:32];
  wire [31:0] to_ip = wire_order[8*20+:32];
  wire [15:0] to_port = wire_order[8*16+:16];
  wire [15:0] udp_length = wire_order[8*14+:16];
  wire [7:0] opcode = wire_order[8*11+:8];
  wire [1:0] pads = wire_order[8*10+4+:2];
  wire [3:0] base = wire_order[8*10+:4];
  wire [23:0] qpn = wire_order[8*4+:24];
  wire [23:0] psn = wire_order[0+:24];
  // Behind a VLAN tag
  wire [15:0] inner_type = wire_order[8*36+:16];
  wire [7:0] inner_protocol = wire_order[8*26+:8];
  wire [31:0] inner_to_ip = wire_order[8*16+:32];

  wire vlan = ethertype == VLAN || ethertype == SERVICE_VLAN;
  reg [15:0] around;  // bytes of the IP packet that are no payload

  always @* begin
    case (code)
      2'd0: around = 16'd44;
      2'd1: around = 16'd48;
      2'd2: around = 16'd60;
      default: around = 16'd64;
    endcase
  end

  // -- Cycle 3: checks of fields ------------------------------------------------------------------

  reg
      ipv4_reg,
      tagged_reg,
      options_reg,
      version_reg,
      fragment_reg,
      udp_reg,
      inner_udp_reg,
      port_reg;
  reg length_reg, brief_reg, base_reg, passes_reg, data_reg, pad_reg;
  reg [31:0] ip_reg;
  reg [23:0] qpn_reg;
  reg [15:0] size_reg;  // of the payload
  reg [ 1:0] code_reg;
  reg [57:0] rest_reg;

  always @(posedge clk) begin
    ipv4_reg      <= ethertype == IPV4;
    tagged_reg    <= vlan && inner_type == IPV4;
    options_reg   <= version[3:0] > 4'd5;
    version_reg   <= version == 8'h45;
    fragment_reg  <= (fragment & 16'h3fff) != 16'd0;  // more fragments, or an offset
    udp_reg       <= protocol == UDP;
    inner_udp_reg <= inner_protocol == UDP;
    port_reg      <= to_port == ROCE_PORT;
    length_reg    <= udp_length == total - 16'd20;
    brief_reg     <= total < 16'd44;
    base_reg      <= base == 4'd0;
    passes_reg    <= opcode == ACKNOWLEDGE || opcode == CNP;
    data_reg      <= opcode < 8'd12;
    pad_reg       <= pads != 2'd0;
    ip_reg        <= vlan ? inner_to_ip : to_ip;
    qpn_reg       <= qpn;
    size_reg      <= total - around;
    code_reg      <= code;
    rest_reg      <= {source, psn, ecn};
  end

  assign lookup_ip  = ip_reg;
  assign lookup_qpn = qpn_reg;

  // -- Cycle 4: forms of frames, and the header's faults ------------------------------------------

  reg plain_4_reg, hidden_4_reg, header_4_reg, opcode_4_reg, pad_4_reg;
  reg [15:0] size_4_reg;
  reg [ 1:0] code_4_reg;
  reg [57:0] rest_4_reg;

  always @(posedge clk) begin
    plain_4_reg  <= ipv4_reg && !options_reg && udp_reg && port_reg && !passes_reg;
    hidden_4_reg <= (ipv4_reg && options_reg && udp_reg) || (tagged_reg && inner_udp_reg);
    header_4_reg <= !version_reg || fragment_reg || !length_reg || brief_reg || !base_reg;
    opcode_4_reg <= !data_reg;
    pad_4_reg    <= pad_reg;
    size_4_reg   <= size_reg;
    code_4_reg   <= code_reg;
    rest_4_reg   <= rest_reg;
  end

  // -- Cycle 5: with the frame's end, and the connection ------------------------------------------

  reg valid_5_reg, plain_5_reg, hidden_5_reg, header_5_reg, opcode_5_reg, pad_5_reg;
  reg [15:0] size_5_reg;
  reg [1:0] code_5_reg;
  reg [31:0] source_5_reg;
  reg [23:0] psn_5_reg;
  reg [1:0] ecn_5_reg;
  wire sound = !end_bad && !end_runt && !end_large;

  always @(posedge clk) begin
    valid_5_reg  <= end_valid && !rst;
    plain_5_reg  <= sound && plain_4_reg;
    hidden_5_reg <= sound && hidden_4_reg;
    header_5_reg <= header_4_reg || !end_whole;
    opcode_5_reg <= opcode_4_reg;
    pad_5_reg    <= pad_4_reg;
    size_5_reg   <= size_4_reg;
    code_5_reg   <= code_4_reg;
    {source_5_reg, psn_5_reg, ecn_5_reg} <= rest_4_reg;
  end

  // -- Cycle 6: what the connection makes of it ---------------------------------------------------

  reg valid_6_reg, of_6_reg, hidden_6_reg, header_6_reg, source_6_reg, opcode_6_reg, length_6_reg;
  reg [22:0] told_6_reg;
  reg [23:0] offset_6_reg;
  reg [JOB_BITS+PORT_BITS-1:0] place_6_reg;

  always @(posedge clk) begin
    valid_6_reg  <= valid_5_reg && !rst;
    of_6_reg     <= plain_5_reg && found;
    hidden_6_reg <= hidden_5_reg && found_ip;
    header_6_reg <= header_5_reg;
    source_6_reg <= source_5_reg != found_source || ethernet_port != found_ethernet;
    opcode_6_reg <= opcode_5_reg;
    length_6_reg <= size_5_reg != 16'd256 << found_mtu || pad_5_reg;
    told_6_reg   <= {code_5_reg, ecn_5_reg, found_mtu, found_epoch};
    offset_6_reg <= psn_5_reg - found_psn;
    place_6_reg  <= {found_job, found_port};
  end

  // -- Cycle 8, and the verdict -------------------------------------------------------------------

  wire ended, of, hidden, header, wrong_source, wrong_opcode, wrong_length;

  agg_tag_delay #(
      .WIDTH (6),
      .CYCLES(2)
  ) u_checks (
      .clk(clk),
      .rst(rst),
      .in_valid(valid_6_reg),
      .in_tag({of_6_reg, hidden_6_reg, header_6_reg, source_6_reg, opcode_6_reg, length_6_reg}),
      .out_valid(ended),
      .out_tag({of, hidden, header, wrong_source, wrong_opcode, wrong_length})
  );

  agg_delay #(
      .WIDTH (47 + JOB_BITS + PORT_BITS),
      .CYCLES(3)
  ) u_told (
      .clk(clk),
      .d({told_6_reg, offset_6_reg, place_6_reg}),
      .q({
        m_verdict_code,
        m_verdict_ecn,
        m_verdict_mtu,
        m_verdict_epoch,
        m_verdict_offset,
        m_verdict_job,
        m_verdict_port
      })
  );

  reg ended_reg;
  reg [4:0] verdict_reg;

  always @(posedge clk) begin
    ended_reg <= ended && !rst;
    if (hidden) verdict_reg <= {DROPPED, HIDDEN};
    else if (!of) verdict_reg <= {NONE, NO_REASON};
    else if (header || !ip_good) verdict_reg <= {DROPPED, HEADER};
    else if (!icrc_good) verdict_reg <= {DROPPED, ICRC};
    else if (wrong_source) verdict_reg <= {DROPPED, SOURCE};
    else if (wrong_opcode) verdict_reg <= {DROPPED, OPCODE};
    else if (wrong_length) verdict_reg <= {DROPPED, LENGTH};
    else verdict_reg <= {TAKEN, NO_REASON};
  end

  assign m_verdict_valid = ended_reg;
  assign {m_verdict_kind, m_verdict_reason} = verdict_reg;

`ifdef FORMAL
  // The verdict of any frame, from the inputs of its cycles. No register is in a feedback, so this is
  // complete after as many steps as a verdict takes.
  reg [3:0] steps = 4'd0;
  always @(posedge clk) if (steps != 4'd9) steps <= steps + 4'd1;

  // Of the head, when it is taken; place: a byte of the frame
  wire [15:0] its_type = {head[8*12+:8], head[8*13+:8]};
  wire [15:0] tag_type = {head[8*16+:8], head[8*17+:8]};
  wire its_vlan = its_type == 16'h8100 || its_type == 16'h88a8;
  wire [15:0] its_total = {head[8*16+:8], head[8*17+:8]};
  wire [15:0] its_udp = {head[8*38+:8], head[8*39+:8]};
  wire [7:0] its_opcode = head[8*42+:8];
  wire [6:0] its_bytes = code == 2'd0 ? 7'd54 : code == 2'd1 ? 7'd58 : code == 2'd2 ? 7'd70 : 7'd74;
  wire its_roce = its_type == 16'h0800 && head[8*14+:4] <= 4'd5 && head[8*23+:8] == 8'd17 &&
      {head[8*36+:8], head[8*37+:8]} == 16'd4791;
  wire its_hidden = (its_type == 16'h0800 && head[8*14+:4] > 4'd5 && head[8*23+:8] == 8'd17) ||
      (its_vlan && tag_type == 16'h0800 && head[8*27+:8] == 8'd17);
  wire its_header = head[8*14+:8] == 8'h45 && head[8*20+:6] == 6'd0 && head[8*21+:8] == 8'd0 &&
      its_total >= 16'd44 && its_udp == its_total - 16'd20 && head[8*43+:4] == 4'd0;
  wire [15:0] its_size = its_total + 16'd10 - {9'd0, its_bytes};
  wire [31:0] its_to = its_vlan ? {head[8*34+:8], head[8*35+:8], head[8*36+:8], head[8*37+:8]} :
      {head[8*30+:8], head[8*31+:8], head[8*32+:8], head[8*33+:8]};

  reg [7:0] ethernet_port_was;
  reg [31:0] to_f_reg;
  reg [23:0] qpn_f_reg;

  // What is known of the frame whose verdict is shown
  wire was_roce, was_hidden, was_header, was_passing, was_data, was_unpadded;
  wire [31:0] was_source;
  wire [15:0] was_size;
  wire [23:0] was_psn;
  wire [1:0] was_ecn, was_code;
  wire was_end, was_bad, was_runt, was_large, was_whole, was_match, was_match_ip;
  wire [JOB_BITS+PORT_BITS-1:0] match_place;
  wire [31:0] match_source;
  wire [7:0] match_ethernet;
  wire [23:0] match_psn;
  wire [2:0] match_mtu;
  wire [15:0] match_epoch;
  reg was_ip_good, was_icrc_good;
  wire was_sound = !was_bad && !was_runt && !was_large;
  wire drops_hidden = was_sound && was_hidden && was_match_ip;
  wire of_connection = was_sound && was_roce && !was_passing && was_match;
  wire header_right = was_header && was_whole && was_ip_good;
  wire from_member = was_source == match_source && ethernet_port == match_ethernet;
  wire length_right = was_size == 16'd256 << match_mtu && was_unpadded;

  agg_delay #(
      .WIDTH (82),
      .CYCLES(7)
  ) u_heads (
      .clk(clk),
      .d({
        its_roce,
        its_hidden,
        its_header,
        its_opcode == 8'h11 || its_opcode == 8'h81,
        its_opcode < 8'd12,
        head[8*43+4+:2] == 2'd0,
        {head[8*26+:8], head[8*27+:8], head[8*28+:8], head[8*29+:8]},
        its_size,
        {head[8*51+:8], head[8*52+:8], head[8*53+:8]},
        head[8*15+:2],
        code
      }),
      .q({
        was_roce,
        was_hidden,
        was_header,
        was_passing,
        was_data,
        was_unpadded,
        was_source,
        was_size,
        was_psn,
        was_ecn,
        was_code
      })
  );

  agg_delay #(
      .WIDTH (5),
      .CYCLES(5)
  ) u_ends (
      .clk(clk),
      .d  ({end_valid, end_bad, end_runt, end_large, end_whole}),
      .q  ({was_end, was_bad, was_runt, was_large, was_whole})
  );

  agg_delay #(
      .WIDTH (85 + JOB_BITS + PORT_BITS),
      .CYCLES(4)
  ) u_matches (
      .clk(clk),
      .d({
        found,
        found_ip,
        found_job,
        found_port,
        found_source,
        found_ethernet,
        found_psn,
        found_mtu,
        found_epoch
      }),
      .q({
        was_match,
        was_match_ip,
        match_place,
        match_source,
        match_ethernet,
        match_psn,
        match_mtu,
        match_epoch
      })
  );

  always @(posedge clk) begin
    ethernet_port_was            <= ethernet_port;
    to_f_reg                     <= its_to;
    qpn_f_reg                    <= {head[8*47+:8], head[8*48+:8], head[8*49+:8]};
    {was_ip_good, was_icrc_good} <= {ip_good, icrc_good};
  end

  always @* begin
    assume (!rst && (steps == 4'd0 || ethernet_port == ethernet_port_was));
    if (steps != 4'd0) assert (lookup_ip == to_f_reg && lookup_qpn == qpn_f_reg);
    if (steps == 4'd9) begin
      assert (m_verdict_valid == was_end);
      assert (m_verdict_kind <= DROPPED && (m_verdict_kind == DROPPED) == (m_verdict_reason != 0));
      // A frame that is not of a registered connection goes on; a data packet of one never does.
      assert ((m_verdict_kind == NONE) == (!of_connection && !drops_hidden));
      if (of_connection && was_data) assert (m_verdict_kind != NONE);
      // A packet is taken only if every check holds, and dropped for the first that fails.
      if (m_verdict_kind == TAKEN || m_verdict_reason > HEADER)
        assert (header_right || drops_hidden);
      if (m_verdict_kind == TAKEN || m_verdict_reason > ICRC)
        assert (was_icrc_good || drops_hidden);
      if (m_verdict_kind == TAKEN || m_verdict_reason > SOURCE)
        assert (from_member || drops_hidden);
      if (m_verdict_kind == TAKEN || m_verdict_reason > OPCODE) assert (was_data || drops_hidden);
      if (m_verdict_kind == TAKEN) assert (of_connection && !drops_hidden && length_right);
      case (m_verdict_reason)
        HEADER: assert (!header_right);
        ICRC: assert (!was_icrc_good);
        SOURCE: assert (!from_member);
        OPCODE: assert (!was_data);
        LENGTH: assert (!length_right);
        default: assert ((m_verdict_reason == HIDDEN) == drops_hidden);
      endcase
      if (m_verdict_kind == TAKEN) begin
        assert ({m_verdict_code, m_verdict_ecn} == {was_code, was_ecn});
        assert ({m_verdict_mtu, m_verdict_epoch} == {match_mtu, match_epoch});
        assert (m_verdict_offset == was_psn - match_psn);
        assert ({m_verdict_job, m_verdict_port} == match_place);
      end
      cover (m_verdict_valid && m_verdict_kind == TAKEN);
      cover (m_verdict_valid && m_verdict_reason == HIDDEN);
      cover (m_verdict_valid && m_verdict_reason == LENGTH);
    end
  end
`endif

endmodule

`default_nettype wire
