// Holds what jobs have of a tree of cards: checks it before a commit, and copies it when a job is set
// up.
//
// A commit waits here before agg_jobs has it (m_op_valid), while a walk over the ports, one a cycle,
// checks the staged ranks. tree_* are stable one cycle later, for agg_job_checks. When a job is set up,
// a second walk copies the ranks to the job's, while agg_jobs assigns the ranks in the job. Members
// without ranks of their own stand for their rank in the job: agg_up_masks gets that (wr_*).
//
// Reads of ranks, between operations alone: an address in cycle 0 and 1 is at ranks_value in cycle 2.
//
// Not done here: the staged registers but MEMBER_RANKS, and all accesses (agg_up_registers).

`default_nettype none

module agg_up_jobs #(
    parameter integer PORTS     = 4,
    parameter integer PORT_BITS = 2,  // width of a port's number, at least 1
    parameter integer JOBS      = 1,
    parameter integer JOB_BITS  = 1,
    parameter integer UDP       = 0   // 1: JOB_PARENT has an upward UDP port
) (
    input wire clk,
    input wire rst,

    // Staged registers
    input  wire [         63:0] parent,
    input  wire [         63:0] repeats,
    input  wire [         63:0] tree,
    input  wire                 clear_staged,
    input  wire                 ranks_write,   // MEMBER_RANKS of a port
    input  wire [PORT_BITS-1:0] ranks_port,
    input  wire [         63:0] ranks_wdata,
    input  wire                 ranks_of_job,  // read JOB_RANKS, instead of MEMBER_RANKS
    input  wire [ JOB_BITS-1:0] ranks_job,
    output wire [         63:0] ranks_value,

    // An operation on jobs
    input  wire                op_valid,
    input  wire                op_commit,
    input  wire [JOB_BITS-1:0] op_job,
    input  wire [   PORTS-1:0] op_ports,
    output wire                m_op_valid,
    output wire                tree_same,
    output wire                tree_parent,
    output wire                tree_ranks,
    output wire                tree_nested,

    // A job is set up, with the last commit's ports and what is staged
    input wire                sets_up,
    input wire [JOB_BITS-1:0] sets_up_job,

    // The parent refuses a packet of a job
    input wire                refused,
    input wire [JOB_BITS-1:0] refused_job,
    input wire [         7:0] refused_code,
    input wire [        31:0] refused_vid,

    // Jobs, job 0 in the lowest bits
    output wire [   JOBS-1:0] job_tree,
    output wire [32*JOBS-1:0] job_up,
    output wire [64*JOBS-1:0] job_tree_ranks,
    output wire [40*JOBS-1:0] job_refusal,     // {VID, code}; 0 for none
    output wire [25*JOBS-1:0] job_repeat,      // JOB_REPEAT of a tree job

    // The ranks that the member at a port stands for, in a job
    output wire                 wr_en,
    output wire [ JOB_BITS-1:0] wr_job,
    output wire [PORT_BITS-1:0] wr_port,
    output wire [         63:0] wr_ranks
);

  `include "ztrees.vh"

  localparam integer LAST = PORTS - 1;
  localparam [63:0] KNOWN = UDP != 0 ? 64'hffff_ff01 : 64'hff01;
  localparam [63:0] LONGEST = {32'd0, MAX_REPEAT};

  // -- Ranks: staged, and of each job ---------------------------------------------------------------

  reg [63:0] staged[0:(1<<PORT_BITS)-1];
  reg [63:0] ranks[0:(1<<(JOB_BITS+PORT_BITS))-1];
  reg [PORTS-1:0] is_staged_reg;  // written since they were cleared
  reg [JOBS-1:0] named_reg;  // the job's members have ranks of their own

  reg walks_reg, copies_reg;  // the walk of a commit; of a set-up
  reg [PORT_BITS-1:0] port_reg;  // the walk's
  reg [PORTS-1:0] ports_reg;  // from port_reg on
  reg last_reg;
  wire busy = walks_reg || copies_reg;
  wire [PORT_BITS-1:0] rd_port = busy ? port_reg : ranks_port;
  wire [JOB_BITS-1:0] rd_job = copies_reg ? sets_up_job : walks_reg ? op_job : ranks_job;

  // One cycle later: the words, and which these are
  reg [63:0] staged_reg, ranks_reg;
  reg is_set_reg, is_named_reg, of_job_reg;
  reg compares_reg, writes_reg, member_reg, ends_reg;
  reg [PORT_BITS-1:0] at_reg;
  wire [63:0] its_staged = is_set_reg ? staged_reg : 64'd0;
  wire [63:0] its_next = member_reg ? its_staged : 64'd0;  // in the job that is set up
  reg [5:0] rank_reg;  // in the job
  wire all_zero;

  always @(posedge clk) begin
    if (ranks_write) begin
      staged[ranks_port]        <= ranks_wdata;
      is_staged_reg[ranks_port] <= 1'b1;
    end
    if (clear_staged || rst) is_staged_reg <= {PORTS{1'b0}};
    staged_reg   <= staged[rd_port];
    ranks_reg    <= ranks[{rd_job, rd_port}];
    is_set_reg   <= is_staged_reg[rd_port];
    is_named_reg <= named_reg[rd_job];
    of_job_reg   <= ranks_of_job;
    if (writes_reg) ranks[{sets_up_job, at_reg}] <= its_next;
  end

  assign ranks_value = of_job_reg ? ranks_reg & {64{is_named_reg}} : its_staged;

  // -- Walks ----------------------------------------------------------------------------------------

  reg  waits_reg;  // a commit waits for its walk, or for agg_jobs
  reg  ready_reg;  // its walk is over
  wire starts = op_valid && op_commit && !waits_reg;

  always @(posedge clk) begin
    waits_reg <= op_valid && op_commit && !rst;
    if (starts || sets_up) begin
      walks_reg  <= starts;
      copies_reg <= sets_up;
      port_reg   <= {PORT_BITS{1'b0}};
      ports_reg  <= op_ports;
      last_reg   <= PORTS == 1;
    end else begin
      port_reg  <= port_reg + 1'b1;
      ports_reg <= ports_reg >> 1;
      last_reg  <= {1'b0, port_reg} + 1'b1 == LAST[PORT_BITS:0];
      if (last_reg || !op_valid) walks_reg <= 1'b0;
      if (last_reg) copies_reg <= 1'b0;
    end
    compares_reg <= walks_reg && !starts && !rst;
    writes_reg   <= copies_reg && !rst;
    ends_reg     <= op_valid && walks_reg && last_reg && !starts && !rst;
    member_reg   <= ports_reg[0];
    at_reg       <= port_reg;
    ready_reg    <= op_valid && (ends_reg || ready_reg) && !rst;
    if (rst) begin
      walks_reg  <= 1'b0;
      copies_reg <= 1'b0;
    end
    if (!copies_reg && !writes_reg) rank_reg <= 6'd0;
    else if (writes_reg && member_reg) rank_reg <= rank_reg + 6'd1;
  end

  assign m_op_valid = op_valid && (!op_commit || ready_reg);
  assign wr_en      = writes_reg;
  assign wr_job     = sets_up_job;
  assign wr_port    = at_reg;
  assign wr_ranks   = !member_reg ? 64'd0 : all_zero ? 64'd1 << rank_reg : its_staged;

  // -- Checks ---------------------------------------------------------------------------------------

  reg [63:0] all_reg;  // the members' ranks
  reg overlaps_reg, some_reg, none_reg, several_reg, differs_reg;
  reg parent_reg, ranks_good_reg, nested_reg, same_reg;
  reg [JOBS-1:0] tree_reg;
  reg [32*JOBS-1:0] up_reg;
  reg [64*JOBS-1:0] repeats_reg, tree_ranks_reg;
  wire is_tree = parent[0];
  wire [63:0] up_now = {32'd0, up_reg[32*op_job+:32]};

  always @(posedge clk) begin
    if (starts) begin
      all_reg      <= 64'd0;
      overlaps_reg <= 1'b0;
      some_reg     <= 1'b0;
      none_reg     <= 1'b0;
      several_reg  <= 1'b0;
      differs_reg  <= 1'b0;
    end else if (compares_reg) begin
      if (member_reg) begin
        all_reg <= all_reg | its_staged;
        if (|(all_reg & its_staged)) overlaps_reg <= 1'b1;
        if (|its_staged) some_reg <= 1'b1;
        else none_reg <= 1'b1;
        if (|(its_staged & (its_staged - 64'd1))) several_reg <= 1'b1;
      end
      if (its_next != ranks_reg) differs_reg <= 1'b1;
    end
    parent_reg <= (parent & ~KNOWN) == 64'd0 &&
        (!is_tree || (repeats != 64'd0 && repeats <= LONGEST));
    ranks_good_reg <= !overlaps_reg &&
        (is_tree ? !none_reg && (all_reg & ~tree) == 64'd0 : !(some_reg && none_reg));
    nested_reg <= is_tree || several_reg;
    same_reg <= !differs_reg && parent == up_now && repeats == repeats_reg[64*op_job+:64] &&
        tree == tree_ranks_reg[64*op_job+:64];
  end

  assign all_zero    = !some_reg;
  assign tree_same   = same_reg;
  assign tree_parent = parent_reg;
  assign tree_ranks  = ranks_good_reg;
  assign tree_nested = nested_reg;

  // -- Jobs -----------------------------------------------------------------------------------------

  reg [40*JOBS-1:0] refusal_reg;
  integer j;

  always @(posedge clk) begin
    for (j = 0; j < JOBS; j = j + 1) begin
      if (refused && (JOBS == 1 || refused_job == j[JOB_BITS-1:0]))
        refusal_reg[40*j+:40] <= {refused_vid, refused_code};
      if (sets_up && (JOBS == 1 || sets_up_job == j[JOB_BITS-1:0])) begin
        tree_reg[j]              <= is_tree;
        up_reg[32*j+:32]         <= parent[31:0];
        repeats_reg[64*j+:64]    <= repeats;
        tree_ranks_reg[64*j+:64] <= tree;
        named_reg[j]             <= some_reg;
        refusal_reg[40*j+:40]    <= 40'd0;
      end
    end
    if (rst) begin
      tree_reg       <= {JOBS{1'b0}};
      up_reg         <= {32 * JOBS{1'b0}};
      repeats_reg    <= {64 * JOBS{1'b0}};
      tree_ranks_reg <= {64 * JOBS{1'b0}};
      named_reg      <= {JOBS{1'b0}};
      refusal_reg    <= {40 * JOBS{1'b0}};
    end
  end

  assign job_tree       = tree_reg;
  assign job_up         = up_reg;
  assign job_tree_ranks = tree_ranks_reg;
  assign job_refusal    = refusal_reg;

  genvar g;
  generate
    for (g = 0; g < JOBS; g = g + 1) begin : g_repeat
      assign job_repeat[25*g+:25] = repeats_reg[64*g+:25];
    end
  endgenerate

`ifdef FORMAL
`ifndef PROMISED
  `define PROMISED assert
`endif

  // For any job: what it was set up with, and the ranks of its members. Staged ranks of all ports.
  (* anyconst *) reg [JOB_BITS-1:0] watched;
  reg was_reset = 1'b0;
  reg running_was = 1'b0;  // no reset in the last cycle
  reg [64*PORTS-1:0] stages, its_ranks;
  reg its_tree, ever;  // ever: it was set up
  reg [31:0] its_up;
  reg [63:0] its_repeats, its_tree_ranks;
  reg [39:0] its_refusal;
  reg [3:0] age;  // cycles of the operation, saturating
  reg [3:0] since;  // cycles since a job was set up, saturating
  reg [JOB_BITS-1:0] new_job;
  reg [PORTS-1:0] new_ports;
  reg op_was, m_op_was;
  reg [PORTS+JOB_BITS:0] fields_were;
  reg [191:0] staged_were;
  reg [63:0] read;  // a rank that was read in the last cycle
  reg reads;
  reg [63:0] member[0:PORTS-1];  // the staged ranks of the operation's members
  reg good_ranks, none_zero, all_none, apart, several, same, good_parent;
  reg [63:0] together;
  reg zero_so_far, any_so_far, apart_so_far, several_so_far, same_so_far;  // ports compared so far
  reg [63:0] together_so_far;
  reg has_set;  // the operation has set the job up
  reg new_none;  // of the job that is set up: no member has ranks of its own
  reg [5:0] below;  // members at lower ports
  wire [PORTS+JOB_BITS:0] fields = {op_ports, op_job, op_commit};
  wire [191:0] staged_now = {parent, repeats, tree};
  wire copying = since <= PORTS;
  wire its_set_up = sets_up && sets_up_job == watched;
  wire [63:0] unknown = UDP != 0 ? 64'hffff_ffff_0000_00fe : 64'hffff_ffff_ffff_00fe;
  integer i;

  // Section 3 of TREES.md
  always @* begin
    good_parent = (parent & unknown) == 64'd0 &&
        (!parent[0] || (repeats != 64'd0 && repeats <= 64'd1 << 24));
    none_zero = 1'b1;
    all_none = 1'b1;
    apart = 1'b1;
    several = 1'b0;
    together = 64'd0;
    {zero_so_far, any_so_far, several_so_far} = 3'd0;
    {apart_so_far, same_so_far} = 2'd3;
    together_so_far = 64'd0;
    same = staged_now == {32'd0, its_up, its_repeats, its_tree_ranks};
    for (i = 0; i < PORTS; i = i + 1) begin
      member[i] = op_ports[i] ? stages[64*i+:64] : 64'd0;
      if (op_ports[i] && member[i] == 64'd0) none_zero = 1'b0;
      if (member[i] != 64'd0) all_none = 1'b0;
      if ((member[i] & together) != 64'd0) apart = 1'b0;
      if ((member[i] & (member[i] - 64'd1)) != 64'd0) several = 1'b1;
      together = together | member[i];
      if (member[i] != its_ranks[64*i+:64]) same = 1'b0;
      if (age >= i + 3) begin
        zero_so_far = !none_zero;
        any_so_far = !all_none;
        apart_so_far = apart;
        several_so_far = several;
        together_so_far = together;
        if (member[i] != its_ranks[64*i+:64]) same_so_far = 1'b0;
      end
    end
    good_ranks = parent[0] ? none_zero && apart && (together & ~tree) == 64'd0 :
        all_none || (none_zero && apart);
    below = 6'd0;
    for (i = 0; i < PORTS; i = i + 1) if (i < wr_port && new_ports[i]) below = below + 6'd1;
  end

  always @(posedge clk) begin
    if (rst) was_reset <= 1'b1;
    running_was <= !rst;
    op_was <= op_valid && !rst;
    m_op_was <= m_op_valid && !rst;
    fields_were <= fields;
    staged_were <= staged_now;
    has_set <= !rst && op_valid && (has_set || sets_up);
    age <= rst || !op_valid ? 4'd0 : age + (age != 4'd15);
    since <= rst ? 4'd15 : sets_up ? 4'd0 : since + (since != 4'd15);
    if (ranks_write) stages[64*ranks_port+:64] <= ranks_wdata;
    if (clear_staged || rst) stages <= 0;
    if (sets_up) {new_job, new_ports, new_none} <= {sets_up_job, op_ports, all_none};
    if (refused && refused_job == watched) its_refusal <= {refused_vid, refused_code};
    if (its_set_up) begin
      ever <= 1'b1;
      its_tree <= parent[0];
      its_up <= parent[31:0];
      its_repeats <= repeats;
      its_tree_ranks <= tree;
      its_refusal <= 40'd0;
      for (i = 0; i < PORTS; i = i + 1) its_ranks[64*i+:64] <= member[i];
    end
    if (rst) begin
      ever <= 1'b0;
      {its_tree, its_up, its_repeats, its_tree_ranks, its_refusal} <= 0;
      its_ranks <= 0;
    end
    reads <= !rst && !op_valid && !op_was && !sets_up && since > PORTS + 1 && ranks_port < PORTS &&
        (!ranks_of_job || ranks_job == watched);
    read <= ranks_of_job ? its_ranks[64*ranks_port+:64] : stages[64*ranks_port+:64];
  end

  always @* begin
    if (was_reset) begin
      // agg_registers: an operation stays until it is answered or the link goes down, and its fields
      // a cycle longer. No staged register changes meanwhile, nor while a job's ranks are copied.
      `PROMISED(!op_was || fields == fields_were);
      `PROMISED(!(op_was || copying) || rst || staged_now == staged_were);
      `PROMISED(!(op_valid || op_was || copying) || !(ranks_write || clear_staged));
      `PROMISED(!ranks_write || ranks_port < PORTS);
      // agg_jobs: a job is set up by a commit that was checked, and no other begins before its ranks
      // are copied.
      `PROMISED(!sets_up || (m_op_was && op_commit && running_was && !copying));
      `PROMISED(!copying || sets_up_job == new_job);
      `PROMISED(!copying || !op_valid || (op_was && since != 4'd15) || !op_commit);
    end
    if (was_reset && !rst) begin
      // Staged ranks, and those of the job
      for (i = 0; i < PORTS; i = i + 1) begin
        assert (stages[64*i+:64] == (is_staged_reg[i] ? staged[i] : 64'd0));
        if (ever && !(copying && new_job == watched && since < i + 2))
          assert (ranks[watched<<PORT_BITS|i] == its_ranks[64*i+:64]);
      end
      if (copying && new_job == watched) begin
        assert (ever);
        for (i = 0; i < PORTS; i = i + 1)
        assert (its_ranks[64*i+:64] == (new_ports[i] ? stages[64*i+:64] : 64'd0));
      end
      assert (ever || its_ranks == 0);
      if (named_reg[watched])
        assert (ever);
        else assert (its_ranks == 0);
      if (reads) assert (ranks_value == read);

      // A commit waits for its walk; all other operations pass.
      if (!op_commit || !op_valid) assert (m_op_valid == op_valid);
      if (op_valid && op_commit) assert (m_op_valid == (age >= PORTS + 2));

      // The walk, and what it has found so far
      if (op_valid && op_commit && age != 0) begin
        assert (walks_reg == (age <= PORTS) && waits_reg);
        assert (compares_reg == (age >= 2 && age <= PORTS + 1) && ends_reg == (age == PORTS + 1));
        if (walks_reg)
          assert (port_reg == age - 1 && ports_reg == op_ports >> (age - 1) &&
              last_reg == (age == PORTS));
        if (compares_reg) begin
          assert (at_reg == age - 2 && member_reg == op_ports[age-2]);
          assert (its_staged == stages[64*(age-2)+:64]);
          if (op_job == watched && ever) assert (ranks_reg == its_ranks[64*(age-2)+:64]);
        end
        assert (all_reg == together_so_far && overlaps_reg == !apart_so_far);
        assert (some_reg == any_so_far && none_reg == zero_so_far && several_reg == several_so_far);
        if (op_job == watched && ever && !has_set) assert (differs_reg == !same_so_far);
      end
      if (age == 0) assert (!waits_reg && !ready_reg);

      // Its checks
      if (m_op_valid && op_commit && age >= PORTS + 3) begin
        assert (tree_parent == good_parent && tree_ranks == good_ranks);
        assert (tree_nested == (parent[0] || several));
        if (op_job == watched && ever && !has_set) assert (tree_same == same);
      end
      if (m_op_was && op_commit) assert (all_zero == all_none);

      // What jobs have
      assert (job_tree[watched] == its_tree && job_up[32*watched+:32] == its_up);
      assert (job_tree_ranks[64*watched+:64] == its_tree_ranks);
      assert (job_repeat[25*watched+:25] == its_repeats[24:0]);
      assert (repeats_reg[64*watched+:64] == its_repeats);
      assert (job_refusal[40*watched+:40] == its_refusal);

      // The ranks are copied, one port a cycle, and members without stand for their rank in the job.
      assert (wr_en == (since >= 1 && since <= PORTS) && copies_reg == (since < PORTS));
      if (copies_reg)
        assert (port_reg == since && ports_reg == new_ports >> since &&
            last_reg == (since == PORTS - 1));
      if (copying) assert (all_zero == new_none && !walks_reg);
      if (wr_en) begin
        assert (wr_port == since - 1 && wr_job == new_job);
        assert (member_reg == new_ports[wr_port] && its_staged == stages[64*wr_port+:64]);
        assert (rank_reg == below);
        assert (wr_ranks == (!new_ports[wr_port] ? 64'd0 :
            all_zero ? 64'd1 << below : stages[64*wr_port+:64]));
      end

      cover (m_op_valid && op_commit && !tree_ranks && none_zero && apart && tree_parent);
      cover (m_op_valid && op_commit && tree_same && its_tree && op_job == watched);
      cover (wr_en && wr_ranks == 64'd2);
      cover (reads && read != 64'd0 && named_reg[watched]);
    end
  end
`endif

endmodule

`default_nettype wire
