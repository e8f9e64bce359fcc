"""The example whose gradients do not depend on ranks, buckets and cards."""

import pathlib
import re
import subprocess
import sys

import pytest

EXAMPLE = pathlib.Path(__file__).resolve().parents[2] / "driver/python/examples/digits.py"


@pytest.fixture(scope="module")
def train(tmp_path_factory):
    """Trains for two epochs, and returns their digests and what is printed beside them."""

    def run(monkeypatch, card="", *options):
        monkeypatch.setenv("TRIBUTARY_CARD", card)
        command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "4", EXAMPLE]
        done = subprocess.run([*command, "--epochs", "2", *options], capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, done.stderr
        losses = [float(loss) for loss in re.findall(r"loss ([\d.]+)", done.stdout)]
        assert losses[1] < losses[0] / 2  # it learns
        return re.findall(r"gradients (\w{16})", done.stdout)

    return run


def test_exact(train, monkeypatch):
    """An exact card gives the same bits in any order, in buckets of 1 and 25 MB, and so does another card."""
    first = train(monkeypatch, "cpu:sum=exact")
    assert len(set(first)) == 2
    assert train(monkeypatch, "cpu:sum=exact", "--order", "3,1,0,2", "--bucket", "1") == first
    assert train(monkeypatch, "cpu:sum=exact,lanes=4,chunk=64,window=8", "--order", "1,0,3,2") == first


def test_gloo(train, monkeypatch):
    """Gloo's bits depend on the order."""
    first = train(monkeypatch, "", "--backend", "gloo")
    assert train(monkeypatch, "", "--backend", "gloo", "--order", "3,1,0,2", "--bucket", "1") != first


def test_plot(train, monkeypatch, tmp_path):
    """The loss curve is an SVG."""
    train(monkeypatch, "", "--plot", str(tmp_path / "loss.svg"))
    assert "<svg" in (tmp_path / "loss.svg").read_text()
