"""Tests of the PyTorch backend, with the wheel that `make wheel` has built, without an installation.

`make torch` runs them. They need torch, so they are no part of `make test`.
"""

import importlib.util
import os
import pathlib
import subprocess
import sys
import tempfile
import zipfile

import numpy as np
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
COMMAND = ROOT / "bin/tributary"
CARD = ROOT / "build/usb/card"  # a virtual card of fp32: 4 lanes, 4 ports

if importlib.util.find_spec("torch") is None:
    collect_ignore_glob = ["test_*.py", "*/test_*.py"]
else:
    _unpacked = tempfile.TemporaryDirectory()
    _wheels = sorted((ROOT / "build/python").glob("tributary-*.whl"))
    assert len(_wheels) == 1, "make wheel builds the wheel that is tested"
    zipfile.ZipFile(_wheels[0]).extractall(_unpacked.name)
    # torch finds the backend by the entry point of the wheel.
    sys.path.insert(0, _unpacked.name)
    os.environ["PYTHONPATH"] = _unpacked.name
    os.environ["OMP_NUM_THREADS"] = "1"


@pytest.fixture(scope="session")
def _pool():
    import ranks

    with ranks.Pool() as pool:
        yield pool


@pytest.fixture
def run(_pool):
    """Runs a function of cases.py in rank processes that live as long as the tests: see ranks.Pool.run."""
    yield _pool.run
    assert not list(_pool.temporary.glob("tributary-*")), "the folder of a socket is left"


@pytest.fixture
def serve(tmp_path):
    """Starts `tributary serve` with a card, and returns the card's name for clients, and the process."""
    daemons = []

    def start(card: str) -> tuple[str, subprocess.Popen]:
        folder = tempfile.TemporaryDirectory(prefix="daemon-")
        path = os.path.join(folder.name, "s")
        daemon = subprocess.Popen(
            [COMMAND, "serve", "-card", card, "-listen", "unix:" + path, "-grace", "0s"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        daemons.append((daemon, folder))
        assert daemon.stdout.readline().startswith("serving at unix:")
        return "serve:unix:" + path, daemon

    yield start
    for daemon, folder in daemons:
        daemon.terminate()
        daemon.communicate(timeout=60)
        folder.cleanup()


@pytest.fixture
def model(tmp_path):
    """Sums arrays, one of each rank, with the Go model, by the command `tributary reduce`."""

    def sums(card: str, arrays: list[np.ndarray], *flags: str) -> np.ndarray:
        for rank, array in enumerate(arrays):
            np.save(tmp_path / f"w{rank}.npy", array)
        files = [tmp_path / f"w{rank}.npy" for rank in range(len(arrays))]
        out = tmp_path / "sum.npy"
        subprocess.run(
            [COMMAND, "reduce", "-card", card, *flags, "-o", out, *files], check=True, timeout=300, capture_output=True
        )
        return np.load(out)

    return sums
