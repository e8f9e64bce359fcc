"""Elaborates designs with slang as Verilog-2005; prints its findings; fails if there are any.

usage: slang.py "TOP INCLUDE_DIR FILE..." ...    (one argument a design)
"""

import sys

from pyslang.driver import Driver

# All of slang's warnings, and every assignment that changes a width, except:
WARNINGS = [
    "-Wextra",
    "-Wconversion",
    # Constants are integers, as in the printed tables; mixing them with 32-bit vectors loses
    # nothing.
    "-Wno-case-type",
    "-Wno-sign-compare",
    "-Wno-arith-op-mismatch",
    "-Wno-bitwise-op-mismatch",
    # Cards with one port, or two slots, shift a one-bit vector by one, which leaves it empty.
    "-Wno-shift-count-overflow",
]


def compiles(design):
    """Returns whether slang finds nothing wrong with the design."""
    top, include, *files = design.split()
    driver = Driver()
    driver.addStandardArgs()
    options = ["slang", "--std", "1364-2005", *WARNINGS, "--top", top, "-I", include, *files]
    if not driver.parseCommandLine(" ".join(options)) or not driver.processOptions():
        return False
    if not driver.parseAllSources():
        return False
    return driver.runFullCompilation(quiet=True)


if __name__ == "__main__":
    sys.exit(not all([compiles(design) for design in sys.argv[1:]]))
