"""Tests of the wheel that `make wheel` has built, without an installation."""

import os
import pathlib
import subprocess
import sys
import tempfile
import zipfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
WHEELS = sorted((ROOT / "build/python").glob("tributary-*.whl"))

_unpacked = tempfile.TemporaryDirectory()
assert len(WHEELS) == 1, "make wheel builds the wheel that is tested"
zipfile.ZipFile(WHEELS[0]).extractall(_unpacked.name)
sys.path.insert(0, _unpacked.name)
os.environ["PYTHONPATH"] = _unpacked.name  # of the programs that tests start


@pytest.fixture
def serve():
    """Starts a daemon with a card of a name, and returns the card's name for clients."""
    daemons = []

    def start(card: str) -> str:
        folder = tempfile.TemporaryDirectory()
        path = os.path.join(folder.name, "s")
        daemon = subprocess.Popen(
            [ROOT / "build/capi/serve", card, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        daemons.append((daemon, folder))
        assert daemon.stdout.readline() == b"ready\n"
        return "serve:unix:" + path

    yield start
    for daemon, folder in daemons:
        daemon.communicate(timeout=60)
        assert daemon.returncode == 0
        folder.cleanup()


@pytest.fixture
def wheel() -> pathlib.Path:
    return WHEELS[0]


@pytest.fixture
def root() -> pathlib.Path:
    return ROOT
