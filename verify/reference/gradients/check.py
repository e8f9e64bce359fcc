"""Compares a sum that a card made with NumPy's, bit for bit.

    python check.py [--op mean] sum.npy w0.npy w1.npy ...

The script computes the expected value with NumPy's float32 additions alone, in the order of the sum
`tree`: neighbours pair up level by level, and an odd one passes up unchanged. File k is the contribution of
port k. Every NaN must be 0x7fc00000. Exit status 0: every bit is right; 1: a bit is wrong.
"""

import argparse
import sys

import numpy as np

QUIET_NAN = np.uint32(0x7FC00000)


def tree_sum(parts):
    """Returns the float32 sum of equally shaped arrays in tree order: ((p0+p1)+(p2+p3))+p4 for five."""
    level = [np.asarray(p) for p in parts]
    for p in level:
        if p.dtype != np.float32 or p.shape != level[0].shape:
            raise ValueError(f"want float32 of shape {level[0].shape}, have {p.dtype} of shape {p.shape}")
    while len(level) > 1:
        pairs = [a + b for a, b in zip(level[::2], level[1::2])]
        level = pairs + level[2 * len(pairs) :]
    return level[0]


def expected(parts, op):
    """Returns the bits (uint32) that `tributary reduce -op OP` must write."""
    with np.errstate(all="ignore"):
        total = tree_sum(parts)
        if op == "mean":
            total = total / np.float32(len(parts))
    return np.where(np.isnan(total), QUIET_NAN, np.ascontiguousarray(total).view(np.uint32).reshape(total.shape))


def main():
    parser = argparse.ArgumentParser(description="Compares a card's sum with NumPy's, bit for bit.")
    parser.add_argument("--op", choices=("sum", "mean"), default="sum")
    parser.add_argument("sum", help="what the card made")
    parser.add_argument("worker", nargs="+", help="what the workers gave, in the order of their ports")
    args = parser.parse_args()

    want = expected([np.load(path) for path in args.worker], args.op)
    have = np.load(args.sum)
    if have.dtype != np.float32 or have.shape != want.shape:
        sys.exit(f"{args.sum}: {have.dtype} of shape {have.shape}, want float32 of shape {want.shape}")
    bits = np.ascontiguousarray(have).view(np.uint32).reshape(have.shape)
    wrong = np.argwhere(bits != want)
    if len(wrong):
        at = tuple(int(i) for i in wrong[0])
        sys.exit(
            f"{args.sum}: {len(wrong)} of {want.size} elements differ from NumPy; "
            f"the first is element {list(at)}: 0x{bits[at]:08x}, want 0x{want[at]:08x}"
        )
    print(f"{args.sum}: all {want.size} elements are NumPy's, bit for bit ({len(args.worker)} workers, {args.op})")


if __name__ == "__main__":
    main()
