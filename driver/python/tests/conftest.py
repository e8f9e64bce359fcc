"""Tests of the wheel that `make wheel` has built, without an installation."""

import os
import pathlib
import subprocess
import sys
import tempfile
import zipfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
COMMAND = ROOT / "bin/tributary"
WHEELS = sorted((ROOT / "build/python").glob("tributary-*.whl"))

_unpacked = tempfile.TemporaryDirectory()
assert len(WHEELS) == 1, "make wheel builds the wheel that is tested"
zipfile.ZipFile(WHEELS[0]).extractall(_unpacked.name)
sys.path.insert(0, _unpacked.name)
os.environ["PYTHONPATH"] = _unpacked.name  # of the programs that tests start


@pytest.fixture
def serve():
    """Starts `tributary serve` with a card, and returns the card's name for clients."""
    daemons = []

    def start(card: str) -> str:
        folder = tempfile.TemporaryDirectory()
        path = os.path.join(folder.name, "s")
        daemon = subprocess.Popen(
            [COMMAND, "serve", "-card", card, "-listen", "unix:" + path, "-grace", "0s"], stdout=subprocess.PIPE, text=True
        )
        daemons.append((daemon, folder))
        assert daemon.stdout.readline().startswith("serving at unix:")
        return "serve:unix:" + path

    yield start
    for daemon, folder in daemons:
        daemon.terminate()
        daemon.communicate(timeout=60)
        assert daemon.returncode == 0
        folder.cleanup()


@pytest.fixture
def wheel() -> pathlib.Path:
    return WHEELS[0]


@pytest.fixture
def root() -> pathlib.Path:
    return ROOT


@pytest.fixture
def command() -> pathlib.Path:
    return COMMAND
