"""Sums arrays by MPI_Allreduce and by NumPy: mpirun -n RANKS python mpi.py FOLDER.

FOLDER/cases.json lists cases: {"format": "int32" or "fp32", "ranks": N, "length": L}. FOLDER/I.in has the arrays of
case I, one rank after another, without a header. The program writes for each case

  I.mpi  the L sums of MPI_Allreduce, in the case's format
  I.sum  the L sums of NumPy: int32, which wraps around, or the fp32 numbers added in float64
  I.abs  of fp32 alone: the sums of magnitudes, in float64
"""

import json
import pathlib
import sys

import numpy as np
from mpi4py import MPI

FORMATS = {"int32": (np.int32, np.int32), "fp32": (np.float32, np.float64)}


def main(folder: pathlib.Path) -> None:
    world = MPI.COMM_WORLD
    cases = json.loads((folder / "cases.json").read_text())
    for index, case in enumerate(cases):
        ranks = case["ranks"]
        group = world.Split(0 if world.rank < ranks else MPI.UNDEFINED)
        if group == MPI.COMM_NULL:
            continue
        own, wide = FORMATS[case["format"]]
        arrays = np.fromfile(folder / f"{index}.in", own).reshape(ranks, case["length"])
        sums = np.empty(case["length"], own)
        group.Allreduce(arrays[group.rank], sums, op=MPI.SUM)
        group.Free()
        if world.rank > 0:
            continue
        sums.tofile(folder / f"{index}.mpi")
        with np.errstate(invalid="ignore"):  # infinities of both signs
            arrays.sum(axis=0, dtype=wide).tofile(folder / f"{index}.sum")
            if own is np.float32:
                np.abs(arrays).sum(axis=0, dtype=wide).tofile(folder / f"{index}.abs")


main(pathlib.Path(sys.argv[1]))
