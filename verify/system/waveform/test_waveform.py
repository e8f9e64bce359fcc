"""Reads the output of `tributary trace` with Surfer's waveform reader.

The waveform has all signals of the views, the beats of the reduction and its sums.
"""

import json
import pathlib
import re
import subprocess

import numpy as np
import pytest
import pywellen

ROOT = pathlib.Path(__file__).parents[3]

# Flags of a card for each make, and the prefix of its modules.
CARDS = {
    "tree": (["-workers", "3", "-lanes", "4"], "agg"),
    "exact": (["-workers", "2", "-lanes", "2", "-sum", "exact", "-format", "bf16", "-bundle"], "tri"),
}


def run(*command):
    """Runs a command that must succeed; returns its output."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


class Trace:
    """A card of a make, and the trace of a reduction on it."""

    def __init__(self, folder, flags, prefix):
        card = folder / "card"
        run(ROOT / "bin/hwgen", *flags, "-prefix", prefix, "-chunk", "16", "-window", "2", "-o", card)
        # The simulation is short, and every piece would read Verilator's headers.
        run("make", "-s", "-C", card / "sim", "OPT=-O0", "VM_PARALLEL_BUILDS=0", "trace")
        self.prefix = prefix
        self.manifest = json.loads((card / "manifest.json").read_text())
        self.trace(card, folder / "out")
        self.signals = {var.full_name: var for var in pywellen.Waveform(self.report["waveform"]).all_vars()}
        self.gtkwave = pathlib.Path(self.report["gtkwave"]).read_text()
        self.surfer = pathlib.Path(self.report["surfer"]).read_text()

    def trace(self, card, out):
        """Repeats the trace until the host, on a busy machine, has not asked for a result or
        resent a chunk."""
        for _ in range(5):
            self.report = json.loads(run(ROOT / "bin/tributary", "trace", card, "-json", "-o", out))
            self.stats = self.report["reduction"]["stats"]
            if self.stats["resent"] == self.stats["replays"] == 0:
                return
        pytest.fail("something was sent again in each of five reductions")

    def beats(self, stream):
        """Returns times and data of a core stream's beats with a payload, during the reduction."""
        # The clock is low at even times, before the edge that takes a beat. The reset precedes
        # cycle 0.
        began = 2 * self.report["began"]
        times = range(began, began + 2 * self.stats["cycles"] + 200, 2)

        def at(name):
            return sampled(self.signals[f"TOP.{self.prefix}_top.u_core.{stream}_{name}"], times)

        taken = zip(times, at("tvalid"), at("tready"), at("tkeep"), at("tdata"))
        return [(time, data) for time, valid, ready, keep, data in taken if valid and ready and keep]


def sampled(var, times):
    """Returns the signal's values at ascending times."""
    changes = [(0, 0), *var.signal]
    values, at = [], 0
    for time in times:
        while at + 1 < len(changes) and changes[at + 1][0] <= time:
            at += 1
        values.append(int(changes[at][1]))
    return values


@pytest.mark.parametrize("make", CARDS)
def test_trace(make, tmp_path):
    trace = Trace(tmp_path, *CARDS[make])
    check_views(trace)
    check_start(trace)
    check_beats_in(trace)
    check_sums(trace)


def check_views(trace):
    """Checks that both views name the same signals, all present in the waveform with their full
    width."""
    in_gtkwave = re.findall(r"^(TOP\.[\w.\[\]]+?)(?:\[(\d+):0\])?$", trace.gtkwave, re.M)
    in_surfer = re.findall(r"^variable_add (\S+)$", trace.surfer, re.M)
    assert [name for name, _ in in_gtkwave] == in_surfer
    for name, high in in_gtkwave:
        assert trace.signals[name].bitwidth == int(high or 0) + 1, name
    assert len(set(in_surfer)) == len(in_surfer)
    # The views are complete: clock and both streams of the link; commits, slots, cache and results;
    # six signals per port; the lanes' inputs and outputs.
    lanes, ports = trace.manifest["lanes"], trace.manifest["workers"]
    assert len(in_surfer) == 3 + 2 * 4 + 10 + 6 + 9 + 6 + 6 * ports + lanes * (ports + 1)
    assert trace.gtkwave.count("@800200") == trace.gtkwave.count("@1000200") == 7 + ports + lanes


def check_start(trace):
    """Checks that GTKWave opens at the reduction."""
    start = int(re.search(r"^\[timestart\] (\d+)$", trace.gtkwave, re.M)[1])
    pixels = 2 ** float(re.search(r"^\*(\S+)", trace.gtkwave, re.M)[1])  # of a step
    first, last = trace.beats("g_port[0].u_ingress.s_axis")[0][0], trace.beats("m_axis")[-1][0]
    assert start <= first and last <= start + 1000 / pixels + 200


def check_beats_in(trace):
    """Checks that the waveform holds every beat that the reduction sent, once."""
    beats = trace.report["reduction"]["elements"] // trace.manifest["lanes"]
    assert beats == trace.stats["beats"] > 0
    for port in range(trace.manifest["workers"]):
        assert len(trace.beats(f"g_port[{port}].u_ingress.s_axis")) == beats


def check_sums(trace):
    """Checks that the waveform's results equal the file of sums."""
    size = trace.manifest["result_beat_bits"] // 8
    out = b"".join(data.to_bytes(size, "little") for _, data in trace.beats("m_axis"))
    assert out == np.load(trace.report["sum"]).tobytes()
