// An AXI4-Lite subordinate in front of the core's register port: 32-bit addresses, 64-bit data.
//
// A write is accepted when its address and its data are both offered, in either order, and the
// previous write's response has been taken; a read, when the previous read's has. One access at a
// time goes to the core; where both kinds wait, they take turns. While the link is down, none is
// accepted; the core answers accepted ones all the same.
//
// Responses: OKAY if the core's code is done, DECERR for an unknown address, SLVERR for every other
// refusal; the register LAST_CODE then has the reason. The lowest three bits of an address are
// ignored. The card refuses writes that lack strobes.
//
// All outputs of the AXI4-Lite port come from registers. Latency: 3 cycles more than the core's for
// a read or a write. Not done here: what an access does (agg_registers).

`default_nettype none

module agg_axil (
    input wire clk,
    input wire rst,
    input wire link_down,

    input  wire [31:0] s_axil_awaddr,
    input  wire [ 2:0] s_axil_awprot,
    input  wire        s_axil_awvalid,
    output wire        s_axil_awready,
    input  wire [63:0] s_axil_wdata,
    input  wire [ 7:0] s_axil_wstrb,
    input  wire        s_axil_wvalid,
    output wire        s_axil_wready,
    output wire [ 1:0] s_axil_bresp,
    output wire        s_axil_bvalid,
    input  wire        s_axil_bready,
    input  wire [31:0] s_axil_araddr,
    input  wire [ 2:0] s_axil_arprot,
    input  wire        s_axil_arvalid,
    output wire        s_axil_arready,
    output wire [63:0] s_axil_rdata,
    output wire [ 1:0] s_axil_rresp,
    output wire        s_axil_rvalid,
    input  wire        s_axil_rready,

    // The core's register port
    output wire        m_reg_valid,
    input  wire        m_reg_ready,
    output wire        m_reg_write,
    output wire [31:0] m_reg_addr,
    output wire [63:0] m_reg_wdata,
    output wire        m_reg_partial,
    input  wire        s_reg_valid,
    output wire        s_reg_ready,
    input  wire [ 7:0] s_reg_code,
    input  wire [63:0] s_reg_value
);

  `include "zwire.vh"

  localparam [1:0] RESP_OKAY = 2'd0;
  localparam [1:0] RESP_SLVERR = 2'd2;
  localparam [1:0] RESP_DECERR = 2'd3;

  localparam [1:0] IDLE = 2'd0;
  localparam [1:0] ACCEPT = 2'd1;  // the ready of the chosen access is high
  localparam [1:0] ACCESS = 2'd2;  // offered to the core
  localparam [1:0] ANSWER = 2'd3;  // wait for the core's reply

  reg [1:0] state_reg;
  reg write_reg;  // the access is a write; between two, the last one was
  reg wready_reg, arready_reg, bvalid_reg, rvalid_reg;
  reg [1:0] bresp_reg, rresp_reg;
  reg [63:0] rdata_reg;
  reg partial_reg;
  reg [31:0] addr_reg;
  reg [63:0] wdata_reg;

  wire writes = s_axil_awvalid && s_axil_wvalid && !bvalid_reg && !link_down;
  wire reads = s_axil_arvalid && !rvalid_reg && !link_down;
  wire turn = writes && !(reads && write_reg);  // of the write
  wire [1:0] resp = s_reg_code == CODE_DONE ? RESP_OKAY :
      s_reg_code == CODE_BAD_ADDRESS ? RESP_DECERR : RESP_SLVERR;

  // A subordinate may ignore protection.
  wire unused_prot = &{s_axil_awprot, s_axil_arprot, s_axil_awaddr[2:0], s_axil_araddr[2:0]};

  always @(posedge clk) begin
    if (s_axil_bready) bvalid_reg <= 1'b0;
    if (s_axil_rready) rvalid_reg <= 1'b0;
    case (state_reg)
      IDLE: begin
        if (writes || reads) begin
          state_reg   <= ACCEPT;
          write_reg   <= turn;
          wready_reg  <= turn;
          arready_reg <= !turn;
        end
      end

      ACCEPT: begin
        state_reg   <= ACCESS;
        wready_reg  <= 1'b0;
        arready_reg <= 1'b0;
        addr_reg    <= {write_reg ? s_axil_awaddr[31:3] : s_axil_araddr[31:3], 3'd0};
        wdata_reg   <= s_axil_wdata;
        partial_reg <= write_reg && s_axil_wstrb != 8'hff;
      end

      ACCESS: if (m_reg_ready) state_reg <= ANSWER;

      default: begin
        if (s_reg_valid) begin
          state_reg <= IDLE;
          if (write_reg) begin
            bvalid_reg <= 1'b1;
            bresp_reg  <= resp;
          end else begin
            rvalid_reg <= 1'b1;
            rresp_reg  <= resp;
            rdata_reg  <= s_reg_value;
          end
        end
      end
    endcase
    if (rst) begin
      state_reg   <= IDLE;
      write_reg   <= 1'b0;
      wready_reg  <= 1'b0;
      arready_reg <= 1'b0;
      bvalid_reg  <= 1'b0;
      rvalid_reg  <= 1'b0;
    end
  end

  assign s_axil_awready = wready_reg;
  assign s_axil_wready  = wready_reg;
  assign s_axil_bresp   = bresp_reg;
  assign s_axil_bvalid  = bvalid_reg;
  assign s_axil_arready = arready_reg;
  assign s_axil_rdata   = rdata_reg;
  assign s_axil_rresp   = rresp_reg;
  assign s_axil_rvalid  = rvalid_reg;

  assign m_reg_valid    = state_reg == ACCESS;
  assign m_reg_write    = write_reg;
  assign m_reg_addr     = addr_reg;
  assign m_reg_wdata    = wdata_reg;
  assign m_reg_partial  = partial_reg;
  assign s_reg_ready    = state_reg == ANSWER;

`ifdef FORMAL
`ifndef PROMISED
  `define PROMISED assert
`endif

  reg  was_reset = 1'b0;
  reg  was_running = 1'b0;  // the last cycle had no reset

  // Responses that are due: at most one of each kind
  wire accepts_write = s_axil_awvalid && s_axil_awready && s_axil_wvalid && s_axil_wready;
  wire accepts_read = s_axil_arvalid && s_axil_arready;
  wire answers_write = s_axil_bvalid && s_axil_bready;
  wire answers_read = s_axil_rvalid && s_axil_rready;
  reg write_due, read_due;
  reg due;  // the core owes an answer
  reg [31:0] due_addr;  // the access
  reg [63:0] due_data;
  reg due_write, due_partial;
  reg [ 1:0] due_resp;  // of the write whose response waits
  reg [65:0] due_value;  // of the read

  // What the manager offered in the last cycle, and still has to offer
  reg aw_waits, w_waits, ar_waits;
  reg [31:0] waiting_awaddr, waiting_araddr;
  reg [71:0] waiting_w;

  always @(posedge clk) begin
    was_running <= !rst;
    aw_waits <= !rst && s_axil_awvalid && !s_axil_awready;
    w_waits <= !rst && s_axil_wvalid && !s_axil_wready;
    ar_waits <= !rst && s_axil_arvalid && !s_axil_arready;
    waiting_awaddr <= s_axil_awaddr;
    waiting_araddr <= s_axil_araddr;
    waiting_w <= {s_axil_wstrb, s_axil_wdata};
    if (rst) was_reset <= 1'b1;
    write_due <= !rst && (accepts_write || (write_due && !answers_write));
    read_due  <= !rst && (accepts_read || (read_due && !answers_read));
    due       <= !rst && ((m_reg_valid && m_reg_ready) || (due && !(s_reg_valid && s_reg_ready)));
    if (accepts_write || accepts_read) begin
      due_write   <= accepts_write;
      due_partial <= accepts_write && s_axil_wstrb != 8'hff;
      due_addr    <= {accepts_write ? s_axil_awaddr[31:3] : s_axil_araddr[31:3], 3'd0};
      due_data    <= s_axil_wdata;
    end
    if (s_reg_valid && s_reg_ready && due_write) due_resp <= resp;
    if (s_reg_valid && s_reg_ready && !due_write) due_value <= {resp, s_reg_value};
  end

  always @* begin
    if (was_reset) begin
      // agg_registers answers each access once.
      `PROMISED(!s_reg_valid || due);

      // The manager keeps an offer until it is taken.
      `PROMISED(!aw_waits || (s_axil_awvalid && s_axil_awaddr == waiting_awaddr));
      `PROMISED(!w_waits || (s_axil_wvalid && {s_axil_wstrb, s_axil_wdata} == waiting_w));
      `PROMISED(!ar_waits || (s_axil_arvalid && s_axil_araddr == waiting_araddr));

      // Address and data of a write are accepted together, and never with a read.
      assert (s_axil_awready == s_axil_wready && !(s_axil_awready && s_axil_arready));
      assert (!s_axil_awready || (s_axil_awvalid && s_axil_wvalid && !s_axil_bvalid && !write_due));
      assert (!s_axil_arready || (s_axil_arvalid && !s_axil_rvalid && !read_due));

      // One response per access; the core sees each access once, as it was accepted.
      assert (write_due == (s_axil_bvalid || (state_reg[1] && write_reg)));
      assert (read_due == (s_axil_rvalid || (state_reg[1] && !write_reg)));
      assert (!(s_axil_bvalid && state_reg[1] && write_reg));
      assert (!(s_axil_rvalid && state_reg[1] && !write_reg));
      assert (due == (state_reg == ANSWER));
      assert ((state_reg == ACCEPT) == (s_axil_awready || s_axil_arready));
      assert (state_reg != ACCEPT || write_reg == s_axil_awready);
      assert (!s_axil_awready || (aw_waits && w_waits));
      assert (!s_axil_arready || ar_waits);
      if (state_reg[1]) begin
        assert (m_reg_write == due_write && m_reg_addr == due_addr);
        assert (!m_reg_write || m_reg_wdata == due_data);
        assert (m_reg_partial == due_partial);
      end
      if (s_axil_bvalid) assert (s_axil_bresp == due_resp);
      if (s_axil_rvalid) assert ({s_axil_rresp, s_axil_rdata} == due_value);
    end
  end

  // It offers an access or an answer until it is taken.
  always @(posedge clk) begin
    if (was_reset && was_running && !rst) begin
      if ($past(s_axil_bvalid && !s_axil_bready)) assert (s_axil_bvalid && $stable(s_axil_bresp));
      if ($past(s_axil_rvalid && !s_axil_rready))
        assert (s_axil_rvalid && $stable(s_axil_rresp) && $stable(s_axil_rdata));
      if ($past(m_reg_valid && !m_reg_ready))
        assert (m_reg_valid && $stable(m_reg_write) && $stable(m_reg_addr) && $stable(m_reg_wdata));

      // No access is chosen while the link is down, and no kind waits for two of the other.
      if ($past(link_down)) assert (!$rose(s_axil_awready) && !$rose(s_axil_arready));
      if ($rose(s_axil_awready)) assert (!$past(write_reg) || !$past(reads));
      if ($rose(s_axil_arready)) assert ($past(write_reg) || !$past(writes));
    end
  end

  always @* begin
    cover (was_reset && s_axil_bvalid && s_axil_bresp == RESP_SLVERR && s_axil_rvalid);
    cover (was_reset && s_axil_rvalid && s_axil_rresp == RESP_DECERR && state_reg == ACCESS &&
        link_down);
    cover (was_reset && s_axil_bvalid && s_axil_bresp == RESP_OKAY && state_reg == ANSWER &&
        !write_reg);
  end
`endif

endmodule

`default_nettype wire
