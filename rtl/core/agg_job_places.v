// Finds slots for a new job: as many as mask + 1, a power of two, at the first multiple of that
// number where no other job has any.
//
// seek starts the search and is high until it ends. mask, job and the jobs are stable then. One
// place is tried each cycle. found or full is high in the cycle in which the search ends, with the
// place in found_place.
//
// Latency: the place with number n, from 0, is found n + 1 cycles after seek rises. Not done here:
// who asks for slots (agg_jobs). The running job with the new job's number does not count as
// another one: its slots are free by the time they are used.

`default_nettype none

module agg_job_places #(
    parameter integer JOBS      = 1,
    parameter integer JOB_BITS  = 1,
    parameter integer SLOT_BITS = 4
) (
    input wire clk,

    input wire                 seek,
    input wire [ JOB_BITS-1:0] job,   // the new job
    input wire [SLOT_BITS-1:0] mask,  // number of its slots - 1

    // Jobs, job 0 in the lowest bits
    input wire [          JOBS-1:0] job_valid,
    input wire [SLOT_BITS*JOBS-1:0] slot_mask,
    input wire [SLOT_BITS*JOBS-1:0] slot_base,

    output wire                 found,
    output wire                 full,
    output wire [SLOT_BITS-1:0] found_place
);

  reg  [SLOT_BITS-1:0] place_reg;  // the place to try
  wire [SLOT_BITS-1:0] next_place = (place_reg | mask) + 1'b1;  // 0 after the last place

  // The place tried in the last cycle
  reg tried_reg, last_reg;
  reg [SLOT_BITS-1:0] tried_place_reg;
  reg [JOBS-1:0] meets, meets_reg;  // jobs with slots there
  integer j;

  always @* begin
    for (j = 0; j < JOBS; j = j + 1) begin
      meets[j] = job_valid[j] && (JOBS == 1 ? 1'b0 : j[JOB_BITS-1:0] != job) &&
          ((place_reg ^ slot_base[SLOT_BITS*j+:SLOT_BITS]) &
           ~(mask | slot_mask[SLOT_BITS*j+:SLOT_BITS])) == {SLOT_BITS{1'b0}};
    end
  end

  always @(posedge clk) begin
    place_reg       <= seek ? next_place : {SLOT_BITS{1'b0}};
    tried_reg       <= seek && !found && !full;
    last_reg        <= next_place == {SLOT_BITS{1'b0}};
    tried_place_reg <= place_reg;
    meets_reg       <= meets;
  end

  assign found       = tried_reg && meets_reg == {JOBS{1'b0}};
  assign full        = tried_reg && meets_reg != {JOBS{1'b0}} && last_reg;
  assign found_place = tried_place_reg;

`ifdef FORMAL
`ifndef PROMISED
  `define PROMISED assert
`endif

  // Any place, and whether another job has slots there.
  (* anyconst *) reg [SLOT_BITS-1:0] any_place;
  localparam integer JOBS_WIDTH = JOBS * (1 + 2 * SLOT_BITS);
  reg seek_was = 1'b0;
  reg ended_was = 1'b0;
  reg [JOB_BITS-1:0] job_was;
  reg [SLOT_BITS-1:0] mask_was;
  reg [JOBS_WIDTH-1:0] jobs_were;
  wire [JOBS_WIDTH-1:0] jobs = {job_valid, slot_mask, slot_base};
  wire is_place = (any_place & mask) == 0;
  reg is_taken;
  integer r;

  initial assume (place_reg == 0 && !tried_reg);  // as after a cycle without a search

  always @* begin
    is_taken = 1'b0;
    for (r = 0; r < JOBS; r = r + 1)
    if (job_valid[r] && r != job && ((any_place ^ slot_base[SLOT_BITS*r+:SLOT_BITS]) &
          ~(mask | slot_mask[SLOT_BITS*r+:SLOT_BITS])) == 0)
      is_taken = 1'b1;
  end

  always @(posedge clk) begin
    seek_was  <= seek;
    ended_was <= found || full;
    job_was   <= job;
    mask_was  <= mask;
    jobs_were <= jobs;
  end

  always @* begin
    `PROMISED(!seek || (mask != 0 && (mask & (mask + 1'b1)) == 0));
    `PROMISED(!seek || !seek_was || (job == job_was && mask == mask_was && jobs == jobs_were));
    `PROMISED(!ended_was || !seek);
    if (!seek_was) assert (place_reg == 0 && !tried_reg);
    if (tried_reg) assert (seek_was && !ended_was);
    if (seek && is_place) begin
      if (tried_reg) begin
        assert ((tried_place_reg & mask) == 0 && place_reg == (tried_place_reg | mask) + 1'b1);
        assert (last_reg == (place_reg == 0));
        if (any_place == tried_place_reg) assert ((meets_reg != 0) == is_taken);
        if (any_place < tried_place_reg) assert (is_taken);
      end else if (!ended_was) assert (place_reg == 0);
      if (found && any_place == found_place) assert (!is_taken);
      if (found && any_place < found_place) assert (is_taken);
      if (full) assert (is_taken);
    end
    assert (!(found && full));
    cover (found && found_place != 0);
    cover (full);
  end
`endif

endmodule

`default_nettype wire
