"""Builds and runs a cocotb bench, for every test_*.py here.

A bench is one file, test_NAME.py. Its functions marked @cocotb.test() run inside the simulator. One
pytest function calls run(), which builds the design and runs them. Name the former without a
leading "test_", so that pytest does not collect them.

    @cocotb.test(timeout_time=100, timeout_unit="us")
    async def passes_beats(dut):
        await start(dut)
        ...

    def test_agg_delay():
        run("agg_delay", parameters={"WIDTH": 8})

WAVES=1 in the environment writes waveforms into the build folder (build/cocotb/...).

verify/gateware/mutate runs the same benches on leaves with mutants. With BUILDS, run() only appends
a line about its build to that file. With MUTANTS, it builds the sources in that folder instead, in
NAME/sources for each build's NAME, once; a plusarg then selects mutant number MUTANT. Without a
number, run() only builds.
"""

import fcntl
import functools
import hashlib
import inspect
import json
import os
import pathlib
import shutil
import subprocess
import unittest.mock

import cocotb
from cocotb.clock import Clock
from cocotb.handle import LogicArrayObject, LogicObject, PackedObject, ValueObjectBase
from cocotb.triggers import ClockCycles, RisingEdge, Timer
from cocotb.utils import get_sim_steps, get_sim_time
from cocotb_tools.check_results import get_results
from cocotb_tools.runner import get_runner

ROOT = pathlib.Path(__file__).resolve().parent.parent
RTL = ROOT / "rtl"
BUILD = ROOT / "build" / "cocotb"

CLOCK_PERIOD_NS = 10

# Every leaf is Verilog-2005; without this, Icarus would accept SystemVerilog.
ICARUS_ARGS = ["-g2005", "-Wall"]
# One C++ file per design: the compiler spends longer on Verilator's headers than on most designs.
VERILATOR_ARGS = ["--x-initial", "unique", "--quiet", "--no-public-flat-rw", "--output-split", "0"]

# By default, the runner makes every signal of a Verilated design visible; naming those of a whole
# card takes the compiler minutes. Benches see only the toplevel's signals.
VISIBLE = '`verilator_config\npublic_flat_rw -module "{toplevel}" -var "*"\n'

# Uninitialized values are random, where Icarus has X. Otherwise they are 0, as in whole cards.
RANDOM_RESET = ["+verilator+rand+reset+2", "+verilator+seed+1"]

# Higher levels cost more compile time than they save: a bench simulates for seconds, mostly in
# Python.
OPTIMIZE = "-O1"

# Pytest's rewriting of assertions, for messages with values, makes a simulation start in twice the time.
PLAIN_ASSERTIONS = {"COCOTB_REWRITE_ASSERTION_FILES": ""}

# The library is compiled already.
VERILATOR_MAKEFLAGS = "VM_GLOBAL_FAST= VM_GLOBAL_SLOW="

# The compiler flags for Verilator's own files, as in Verilator's makefiles.
LIBRARY = ["verilated", "verilated_dpi", "verilated_vpi", "verilated_threads"]
LIBRARY_FLAGS = ["-DVERILATOR=1"] + [
    f"-DVM_{what}=0" for what in "COVERAGE SC TIMING TRACE TRACE_FST TRACE_VCD TRACE_SAIF".split()
]


def leaf(name):
    """Returns the file of a leaf, in one of the folders of rtl/."""
    (file,) = RTL.glob(f"*/{name}.v")
    return file


def run(
    toplevel, sources=None, parameters=None, simulator="icarus", includes=(RTL,), testcase=None, env=None
):
    """Builds toplevel and runs the cocotb tests of the calling test_*.py; raises if one fails.

    toplevel: name of the module under test.
    sources: its Verilog files, including those of instantiated leaves; by default the leaf TOPLEVEL.
    parameters: Verilog parameters of toplevel, name to integer.
    simulator: "icarus" compiles at once, and has X. "verilator" compiles for some seconds, simulates
        about a hundred times faster, and initializes values at random. A leaf that is slow in Icarus
        uses Verilator, and Icarus for other parameters.
    includes: folders for `include; by default rtl/ (zwire.vh).
    testcase: names of the cocotb tests to run; by default all of the file.
    env: further environment variables for the tests.
    """
    module = _calling_bench()
    if sources is None:
        sources = [leaf(toplevel)]
    parameters = parameters or {}
    name = _build_name(toplevel, sources, parameters, simulator)
    build_dir = test_dir = BUILD / module / name
    plusargs, built = RANDOM_RESET if simulator == "verilator" and toplevel != "agg_top" else [], False
    if "BUILDS" in os.environ:
        _tell(os.environ["BUILDS"], name, toplevel, sources, parameters, includes)
        return
    if "MUTANTS" in os.environ:
        build_dir = pathlib.Path(os.environ["MUTANTS"]) / name
        sources = [build_dir / "sources" / pathlib.Path(source).name for source in sources]
        includes = [build_dir / "sources"]
        built = (build_dir / "built").exists()
        test_dir = build_dir / f"mutant_{os.environ['MUTANT']}"
        plusargs = [*plusargs, f"+mutant={os.environ['MUTANT']}"]
    runner = get_runner(simulator)
    if not built:
        _build(runner, toplevel, sources, parameters, simulator, includes, build_dir)
    if "MUTANTS" in os.environ and not os.environ["MUTANT"]:
        return
    simulate = functools.partial(
        runner.test,
        test_module=module,
        hdl_toplevel=toplevel,
        hdl_toplevel_lang="verilog",
        build_dir=build_dir,
        test_dir=test_dir,
        plusargs=plusargs,
        testcase=testcase,
        seed=os.environ.get("COCOTB_RANDOM_SEED", "1"),
    )
    try:
        results = simulate(extra_env={**PLAIN_ASSERTIONS, **(env or {})})
    except SystemExit:
        if "MUTANTS" not in os.environ:
            simulate(extra_env=env or {})  # the same failure, with the values of the assertion
        raise
    tests, failed = get_results(results)
    assert tests > 0, f"{module}: no cocotb test ran"
    assert failed == 0, f"{module}: {failed} of {tests} cocotb tests failed"


def _build(runner, toplevel, sources, parameters, simulator, includes, build_dir):
    """Compiles a design in its folder."""
    sources = [*sources]
    if simulator == "verilator":
        build_dir.mkdir(parents=True, exist_ok=True)
        visible = build_dir / "visible.vlt"
        visible.write_text(VISIBLE.format(toplevel=toplevel))
        sources.insert(0, visible)
        args = [*VERILATOR_ARGS, "-LDFLAGS", library_objects()]
        flags = rf"{VERILATOR_MAKEFLAGS} OPT_FAST={OPTIMIZE}\ -include\ {library() / 'headers.h'}"
    else:
        args, flags = ICARUS_ARGS, ""
    # Other tests of this process run make too.
    with unittest.mock.patch.dict(os.environ, MAKEFLAGS=flags):
        runner.build(
            sources=sources,
            hdl_toplevel=toplevel,
            parameters=parameters,
            includes=list(includes),
            build_dir=build_dir,
            build_args=args,
            timescale=("1ns", "1ns"),
            always=True,
        )
    (build_dir / "built").touch()


@functools.cache
def library():
    """Returns the folder shared by all designs: Verilator's library, compiled, and its headers,
    precompiled.

    The compiler takes longer for them than for most designs. They are made once for each pair of
    Verilator and compiler.
    """
    versions = [_said("verilator", "--version"), _said("c++", "--version"), *LIBRARY_FLAGS]
    folder = BUILD / f"verilated_{hashlib.sha256(repr(versions).encode()).hexdigest()[:8]}"
    BUILD.mkdir(parents=True, exist_ok=True)
    with open(folder.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # another process may be making it
        if not folder.exists():
            scratch = folder.with_suffix(".new")
            shutil.rmtree(scratch, ignore_errors=True)
            scratch.mkdir()
            _compile_library(scratch)
            scratch.rename(folder)
    return folder


def library_objects():
    """Returns the library's object files, for the linker."""
    return " ".join(str(library() / f"{name}.o") for name in LIBRARY)


def _compile_library(folder):
    """Compiles the shared library and headers into a folder."""
    include = pathlib.Path(_said("verilator", "--getenv", "VERILATOR_ROOT").strip()) / "include"
    flags = [f"-I{include}", f"-I{include / 'vltstd'}", *LIBRARY_FLAGS]
    header = folder / "headers.h"
    header.write_text('#include "verilated.h"\n#include "verilated_vpi.h"\n')
    commands = [["c++", OPTIMIZE, *flags, "-x", "c++-header", header, "-o", f"{header}.gch"]]
    for name in LIBRARY:
        commands.append(["c++", OPTIMIZE, *flags, "-c", include / f"{name}.cpp", "-o", folder / f"{name}.o"])
    for command in commands:
        subprocess.run(command, check=True)


def _said(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def _tell(file, name, toplevel, sources, parameters, includes):
    """Appends a bench's build to the file, as a line of JSON."""
    what = {
        "name": name,
        "toplevel": toplevel,
        "sources": [str(source) for source in sources],
        "parameters": {key: str(value) for key, value in parameters.items()},
        "includes": [str(folder) for folder in includes],
    }
    with open(file, "a") as out:
        out.write(json.dumps(what) + "\n")


def _calling_bench():
    """Returns the name of the innermost test_*.py on the stack."""
    names = (pathlib.Path(frame.filename).stem for frame in inspect.stack())
    return next(name for name in names if name.startswith("test_"))


def _build_name(toplevel, sources, parameters, simulator):
    """Returns a folder name that is unique to the build, except for the files' contents."""
    key = repr((sorted(map(str, sources)), sorted(parameters.items())))
    return f"{toplevel}_{simulator}_{hashlib.sha256(key.encode()).hexdigest()[:8]}"


def _write(handle, value):
    """Writes a value to a handle of a quick kind, except an integer that the signal is driven with already.

    A bench writes more often than it does anything else, and mostly what it wrote before.
    """
    if value.__class__ is not int:
        handle._driven = None
    elif value == handle._driven:
        return
    else:
        handle._driven = value
    _write_by_cocotb(handle, value)


_write_by_cocotb = ValueObjectBase.value.fset


def _read(handle):
    """Returns the value of a handle of a quick kind: the object that it was before, while the bits are the same.

    The integer of a value is computed once, and a value itself takes cocotb longer than its bits. Benches
    change no value that they have read.
    """
    now = handle._handle.get_signal_val_binstr()
    if now != handle._bits:
        handle._bits, handle._value = now, handle.get()
    return handle._value


# The quick kind of each kind of handle
_QUICK = {
    kind: type(f"Quick{kind.__name__}", (kind,), {"__slots__": (), "value": property(_read, _write)})
    for kind in (LogicObject, LogicArrayObject, PackedObject)
}


def _make_quick(handle):
    """Makes accesses to a handle quick, except to a register, whose writes the module undoes."""
    if type(handle) in _QUICK and not handle._name.endswith("_reg") and not handle.is_const:
        handle.__class__, handle._bits = _QUICK[type(handle)], None
    if type(handle) in _QUICK.values():
        handle._driven = None  # what the test before has written may never have arrived


async def start(dut):
    """Starts the clock, holds rst for four cycles, and returns after the first edge without it.

    Before, drive the module's inputs to a quiet state (StreamSource and StreamSink do so when
    created).
    """
    # As attributes, handles are found at once; cocotb looks them up by name each time.
    vars(dut).update({handle._name: handle for handle in dut})
    for handle in dut:
        _make_quick(handle)
    # The clock begins low: inputs have settled before the first edge.
    cocotb.start_soon(Clock(dut.clk, CLOCK_PERIOD_NS, unit="ns", impl="gpi").start(start_high=False))
    if hasattr(dut, "rst"):
        dut.rst.value = 1
        await ClockCycles(dut.clk, 4)
        dut.rst.value = 0
    await RisingEdge(dut.clk)


def bits(handle):
    """Returns the signal's value as a string of 0, 1, X and Z: str(handle.value), in a third of the time."""
    return handle._handle.get_signal_val_binstr()


def number(handle):
    """Returns the signal's value, which must have no X: int(handle.value), in a third of the time."""
    return int(handle._handle.get_signal_val_binstr(), 2)


def joined(width, values):
    """Returns a vector of fields of the given width, the first lowest."""
    return sum(int(value) << width * i for i, value in enumerate(values))


def cycle():
    """Returns the number of the clock cycle, the same for all streams."""
    return get_sim_time("step") // _cycle_steps()


@functools.cache
def _cycle_steps():
    return get_sim_steps(CLOCK_PERIOD_NS, "ns")


async def wait_cycles(dut, count):
    """Like ClockCycles, for a caller that a clock edge woke, but in two steps in total instead
    of one per cycle. A count of 0 returns at once."""
    if count:
        await Timer(count * CLOCK_PERIOD_NS - CLOCK_PERIOD_NS // 2, "ns")
        await RisingEdge(dut.clk)
