"""Sums arrays element by element with math.fsum, and prints the MB/s of arrays of its fastest pass.

    fsum.py FILE ARRAYS BYTES SECONDS

FILE holds the first fp32 elements of every array, one array after another. The interpreter is so much
slower than memory that these alone are summed, over and over.
"""

import math
import sys
import time
from array import array


def main(path: str, arrays: int, seconds: float) -> None:
    elements = array("f")
    with open(path, "rb") as file:
        elements.frombytes(file.read())
    part = len(elements) // arrays
    rows = [elements[p * part : (p + 1) * part].tolist() for p in range(arrays)]
    fastest = math.inf
    begin = time.perf_counter()
    while (before := time.perf_counter()) - begin < seconds:
        array("f", map(math.fsum, zip(*rows)))
        fastest = min(fastest, time.perf_counter() - before)
    print(len(elements) * 4 / fastest / 1e6)


main(sys.argv[1], int(sys.argv[2]), float(sys.argv[4]))
