"""Elaborates designs with slang as Verilog-2005; prints what it finds and fails when there is anything.

usage: slang.py "TOP INCLUDE_DIR FILE..." ...    (one argument a design)
"""

import sys

from pyslang.driver import Driver

# All that slang warns about, and every assignment that changes a width; but for:
WARNINGS = [
    "-Wextra",
    "-Wconversion",
    # Constants are of type integer, as the tables print them; mixed with vectors of 32 bits nothing is lost.
    "-Wno-case-type",
    "-Wno-sign-compare",
    "-Wno-arith-op-mismatch",
    "-Wno-bitwise-op-mismatch",
    # What a card with one port, or two slots, elaborates to: a vector of one bit shifted by one, which is empty.
    "-Wno-shift-count-overflow",
]


def compiles(design):
    """Whether slang has nothing to say about the design."""
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
