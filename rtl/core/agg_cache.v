// Result cache: a memory of sums, and the data of the stream that leaves the core.
//
// A sum's address (wr_en, wr_addr) is in cycle 0, the sum (wr_data) in cycle 1. Each cycle without
// hold reads. A read in cycle 0 returns sums with an address in cycle 0 or earlier: those that the
// memory does not have yet are forwarded. The word is *fetched* in cycle 1. It stays with hold, and
// goes to the output with shift, or zeros go there with blank. So data has it in cycle 2 at the
// earliest, and until the next shift.
//
// A block RAM is slow: nothing but a register is at its output. A forwarded word has a register of
// its own, and one gate chooses between the two. Throughput: a word a cycle.
//
// Not done here: valid bits (agg_stage), reset. A word that was not written is undefined.

`default_nettype none

module agg_cache #(
    parameter integer WIDTH     = 512,  // bits per word
    parameter integer ADDR_BITS = 8
) (
    input wire clk,

    input wire                 wr_en,
    input wire [ADDR_BITS-1:0] wr_addr,
    input wire [    WIDTH-1:0] wr_data,  // one cycle later

    input wire [ADDR_BITS-1:0] rd_addr,

    input  wire             hold,   // the fetched word stays, nothing is read
    input  wire             shift,  // it goes to the output; not with hold
    input  wire             blank,
    output wire [WIDTH-1:0] data
);

  reg wr_reg;
  reg [ADDR_BITS-1:0] wr_addr_reg;

  // A word that is read in the cycle of its write is forwarded: block RAM needs no logic for that.
  (* no_rw_check *) reg [WIDTH-1:0] words[0:(1<<ADDR_BITS)-1];
  reg [WIDTH-1:0] fetched_reg;

  // The memory lacks the fetched word: the word comes now (now), or came one cycle before the fetch
  // or during a hold, and came_reg has it (recent). The addresses of the former are compared in the
  // first cycle, the fetch.
  reg now_reg;
  reg first_reg, kept_reg, was_reg;
  reg [ADDR_BITS-1:0] was_addr_reg, rd_addr_reg;
  wire recent = first_reg ? was_reg && was_addr_reg == rd_addr_reg : kept_reg;
  reg [WIDTH-1:0] came_reg;

  // The output: the memory's word, or the forwarded one, which may be blank
  reg [WIDTH-1:0] stored_reg, forwarded_reg;
  reg forwards_reg;

  always @(posedge clk) begin
    if (wr_reg) words[wr_addr_reg] <= wr_data;
    if (!hold) fetched_reg <= words[rd_addr];
    wr_reg      <= wr_en;
    wr_addr_reg <= wr_addr;

    if (now_reg || !hold) came_reg <= wr_data;
    now_reg      <= !hold && wr_en && wr_addr == rd_addr;
    first_reg    <= !hold;
    kept_reg     <= now_reg || recent;
    was_reg      <= wr_reg;
    was_addr_reg <= wr_addr_reg;
    rd_addr_reg  <= rd_addr;

    if (shift) begin
      stored_reg    <= fetched_reg;
      forwarded_reg <= blank ? {WIDTH{1'b0}} : now_reg ? wr_data : came_reg;
      forwards_reg  <= now_reg || recent || blank;
    end
  end

  assign data = forwards_reg ? forwarded_reg : stored_reg;

`ifdef FORMAL
`ifndef PROMISED
  `define PROMISED assert
`endif

  // For any word: the latest sum in it, when it is read and when it leaves.
  (* anyconst *) reg [ADDR_BITS-1:0] watched;
  reg started = 1'b0;  // not in the first cycle
  reg known = 1'b0;  // it was written
  reg came_was = 1'b0;  // its address came in the last cycle
  reg asked = 1'b0;  // it is fetched, since the last cycle
  reg fetches = 1'b0;  // it is fetched, since before that
  reg shows = 1'b0;  // it is at the output
  reg zero = 1'b0;  // the output is blank
  reg [WIDTH-1:0] truth, due, shown;
  wire [WIDTH-1:0] truth_next = came_was ? wr_data : truth;
  wire knows = known || came_was;
  wire [WIDTH-1:0] due_now = asked ? truth_next : due;
  wire word_fetched = (asked && knows) || fetches;

  always @(posedge clk) begin
    started <= 1'b1;
    came_was <= wr_en && wr_addr == watched;
    truth <= truth_next;
    known <= knows;
    asked <= !hold && rd_addr == watched;
    due <= due_now;
    fetches <= word_fetched && hold;
    if (shift) begin
      shows <= word_fetched && !blank;
      shown <= due_now;
      zero  <= blank;
    end
  end

  always @* begin
    // agg_stage: a word is shifted, held or not there.
    `PROMISED(!(hold && shift));
    if (known) assert (truth == words[watched]);
    if (started) assert (came_was == (wr_reg && wr_addr_reg == watched));
    if (asked && !fetches) begin
      assert (now_reg == came_was);
      if (knows) assert (now_reg || due_now == (recent ? came_reg : fetched_reg));
    end
    if (fetches) assert (!now_reg && due == (recent ? came_reg : fetched_reg));
    if (shows) assert (data == shown);
    if (zero) assert (data == 0);

    cover (shows && forwards_reg && shown != 0);
    cover (shows && !forwards_reg && shown != 0);
    cover (fetches && recent && shift);
  end
`endif

endmodule

`default_nettype wire
