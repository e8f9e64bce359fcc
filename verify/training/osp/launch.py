"""Starts the ranks of a training as processes of this machine."""

import importlib.util
import pathlib
import pickle
import sys
import tempfile
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
import torch.multiprocessing

ROOT = pathlib.Path(__file__).resolve().parents[3]
if importlib.util.find_spec("tributary") is None:  # OSP needs the sources alone, unlike the backend
    sys.path.insert(0, str(ROOT / "driver/python"))  # the processes inherit the path


def run(function: Callable[..., Any], ranks: int, *arguments: Any) -> list[Any]:
    """Calls function(rank, *arguments) in a process of each rank, with a default process group of Gloo.

    Returns the results, by rank. A process that fails ends all, and its exception is raised.
    """
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(_rank, (ranks, folder, function, arguments), ranks)
        return [pickle.loads((pathlib.Path(folder) / str(rank)).read_bytes()) for rank in range(ranks)]


def _rank(rank: int, ranks: int, folder: str, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=ranks)
    result = function(rank, *arguments)
    (pathlib.Path(folder) / str(rank)).write_bytes(pickle.dumps(result))
    dist.destroy_process_group()
