"""Elaborates designs with slang as Verilog-2005; prints what it finds and fails when there is anything.

usage: slang.py "TOP INCLUDE_DIR FILE..." ...    (one argument a design)
"""

import sys

from pyslang.driver import Driver


def compiles(design):
    """Whether slang has nothing to say about the design."""
    top, include, *files = design.split()
    driver = Driver()
    driver.addStandardArgs()
    options = ["slang", "--std", "1364-2005", "-Weverything", "--top", top, "-I", include, *files]
    if not driver.parseCommandLine(" ".join(options)) or not driver.processOptions():
        return False
    if not driver.parseAllSources():
        return False
    return driver.runFullCompilation(quiet=True)


if __name__ == "__main__":
    sys.exit(not all([compiles(design) for design in sys.argv[1:]]))
