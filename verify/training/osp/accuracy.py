"""Trains small models with OSP and its controls in real processes, and compares the test accuracy.

    python verify/training/osp/accuracy.py digits --ranks 4
    python verify/training/osp/accuracy.py shapes --ranks 4

digits: scikit-learn's handwritten digits, a network with one hidden layer, SGD with momentum.
shapes: a small convolutional network learns shapes that this program draws, SGD with momentum.

All variants of a seed start from the same parameters and see the same batches. The test set is held out.
"""

import argparse
import json
import statistics
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import launch
import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

from tributary.torch import OSP

# The arguments of OSP for each variant; None is DDP without OSP.
VARIANTS: dict[str, dict[str, Any] | None] = {
    "bsp": None,
    "osp": {"deferred": 0.9},
    "stale": {"deferred": 0.9, "control": "stale"},
    "drop": {"deferred": 0.9, "control": "drop"},
}


@dataclass(frozen=True)
class Task:
    """A model, its data and its optimizer."""

    model: Callable[[], nn.Module]
    optimizer: Callable[[nn.Module], torch.optim.Optimizer]
    # Makes inputs and targets for training and for the test.
    data: Callable[[torch.Generator], tuple[Tensor, Tensor, Tensor, Tensor]]
    epochs: int
    batch: int  # of all ranks together


def digits(generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """1,437 images to train and 360 to test, 64 pixels each."""
    from sklearn.datasets import load_digits

    data = load_digits()
    x, y = torch.tensor(data.data / 16, dtype=torch.float32), torch.tensor(data.target)
    order = torch.randperm(len(x), generator=generator)
    return x[order[:1437]], y[order[:1437]], x[order[1437:]], y[order[1437:]]


# Eight shapes of 5 x 5 pixels.
SHAPES = [
    "..#.. ..#.. ##### ..#.. ..#..",
    "#...# .#.#. ..#.. .#.#. #...#",
    "##### #...# #...# #...# #####",
    "..#.. .#.#. #...# .#.#. ..#..",
    "##### ..#.. ..#.. ..#.. ..#..",
    "#.... #.... #.... #.... #####",
    "##### ..... ##### ..... #####",
    "#.#.# #.#.# #.#.# #.#.# #.#.#",
]


def shapes(generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """2,048 images to train and 1,024 to test, 12 x 12 pixels: a shape anywhere, and noise (deviation 0.3)."""
    known = torch.tensor([[[float(pixel == "#") for pixel in row] for row in shape.split()] for shape in SHAPES])
    y = torch.randint(0, len(SHAPES), (2048 + 1024,), generator=generator)
    places = torch.randint(0, 8, (len(y), 2), generator=generator)
    x = 0.3 * torch.randn(len(y), 1, 12, 12, generator=generator)
    for image, (row, column), shape in zip(x, places.tolist(), y, strict=True):
        image[0, row : row + 5, column : column + 5] += known[shape]
    return x[:2048], y[:2048], x[2048:], y[2048:]


def convolutional() -> nn.Module:
    """Two convolutions, and the largest value of each channel."""
    return nn.Sequential(
        nn.Conv2d(1, 16, 3),
        nn.ReLU(),
        nn.Conv2d(16, 16, 3),
        nn.ReLU(),
        nn.AdaptiveMaxPool2d(1),
        nn.Flatten(),
        nn.Linear(16, len(SHAPES)),
    )


TASKS = {
    "digits": Task(
        lambda: nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10)),
        lambda model: torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9),
        digits,
        epochs=6,
        batch=128,
    ),
    "shapes": Task(
        convolutional,
        lambda model: torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9),
        shapes,
        epochs=6,
        batch=128,
    ),
}


def batches(count: int, task: Task, rank: int, ranks: int, generator: torch.Generator) -> Iterator[Tensor]:
    """The indices of a rank's examples in each step of all epochs."""
    share = task.batch // ranks
    for _ in range(task.epochs):
        order = torch.randperm(count, generator=generator)
        for first in range(0, count - task.batch + 1, task.batch):
            yield order[first + rank * share : first + (rank + 1) * share]


def accuracy(rank: int, task: Task, seed: int, variant: dict[str, Any] | None, group: dist.ProcessGroup | None) -> float:
    """Trains one model, and returns its test accuracy in percent."""
    generator = torch.Generator().manual_seed(seed)
    x, y, test_x, test_y = task.data(generator)
    torch.manual_seed(seed)
    net = task.model()
    model = DistributedDataParallel(net)
    optimizer = task.optimizer(net)
    osp = None if variant is None else OSP(model, optimizer, group=group, **variant)
    for batch in batches(len(x), task, rank, dist.get_world_size(), generator):
        (osp or optimizer).zero_grad()
        cross_entropy(model(x[batch]), y[batch]).backward()
        (osp or optimizer).step()
    if osp:
        osp.flush()
    net.eval()
    with torch.no_grad():
        return 100 * (net(test_x).argmax(1) == test_y).double().mean().item()


def measure(rank: int, name: str, seeds: range) -> dict[str, list[float]]:
    """Trains all variants with every seed."""
    group = dist.new_group()
    assert isinstance(group, dist.ProcessGroup)
    return {
        variant: [accuracy(rank, TASKS[name], seed, arguments, group) for seed in seeds]
        for variant, arguments in VARIANTS.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", choices=TASKS)
    parser.add_argument("--ranks", type=int, default=4, help="processes (default 4)")
    parser.add_argument("--seeds", type=int, default=10, help="trainings of each variant (default 10)")
    parser.add_argument("--first-seed", type=int, default=0, help="seed of the first training (default 0)")
    parser.add_argument("--json", type=argparse.FileType("w"), help="write the accuracies of all seeds to this file")
    arguments = parser.parse_args()
    seeds = range(arguments.first_seed, arguments.first_seed + arguments.seeds)
    results = launch.run(measure, arguments.ranks, arguments.task, seeds)
    if any(result != results[0] for result in results):
        sys.exit("accuracy: the ranks' models differ")
    print(f"{arguments.task}, {arguments.ranks} ranks, seeds {seeds[0]} to {seeds[-1]}: test accuracy, %")
    for variant, values in results[0].items():
        spread = statistics.stdev(values) if len(values) > 1 else 0.0
        print(f"  {variant:6}  {statistics.mean(values):5.1f}  (deviation {spread:.1f}, {min(values):.1f} to {max(values):.1f})")
    if arguments.json:
        json.dump({"task": arguments.task, "ranks": arguments.ranks, "seeds": [*seeds], "accuracy": results[0]}, arguments.json, indent=1)


if __name__ == "__main__":
    main()
