"""What the ranks of test_osp.py do. Each function runs in every rank, and returns what the test compares."""

import contextlib
import copy
import datetime
import logging
from collections.abc import Callable
from typing import Any
from unittest import mock

import launch  # noqa: F401  # the path of the package
import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

from tributary.torch import OSP

Make = Callable[[nn.Module], torch.optim.Optimizer]

OPTIMIZERS: dict[str, Make] = {
    "sgd": lambda m: torch.optim.SGD(m.parameters(), lr=0.2),
    "momentum": lambda m: torch.optim.SGD(m.parameters(), lr=0.1, momentum=0.9),
    "all of sgd": lambda m: torch.optim.SGD(
        m.parameters(), lr=0.1, momentum=0.9, weight_decay=0.01, dampening=0.1, nesterov=False
    ),
    "nesterov": lambda m: torch.optim.SGD(m.parameters(), lr=0.1, momentum=0.9, weight_decay=0.01, nesterov=True),
    "adam": lambda m: torch.optim.Adam(m.parameters(), lr=0.01, weight_decay=0.1),
    "adamw": lambda m: torch.optim.AdamW(m.parameters(), lr=0.01, weight_decay=0.1),
}


def net() -> nn.Module:
    """64 inputs, 10 outputs, and parameters whose last block is shorter than the others."""
    torch.manual_seed(7)
    return nn.Sequential(nn.Linear(64, 37), nn.ReLU(), nn.Linear(37, 10))


def batch(step: int, rank: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(1000 * step + rank)
    return torch.randn(8, 64, generator=generator), torch.randint(0, 10, (8,), generator=generator)


def loss(model: nn.Module, step: int, rank: int) -> Tensor:
    x, y = batch(step, rank)
    return cross_entropy(model(x), y)


def flat(model: nn.Module) -> Tensor:
    return torch.cat([p.detach().reshape(-1) for p in model.parameters()])


def momenta(optimizer: torch.optim.Optimizer) -> list[Tensor]:
    """The optimizer's state in the order of the parameters."""
    return [v for s in optimizer.state.values() for _, v in sorted(s.items()) if isinstance(v, Tensor)]


def ddp(rank: int, optimizer: str, steps: int) -> Tensor:
    """Parameters after a training with DDP alone."""
    model = DistributedDataParallel(net(), bucket_cap_mb=0.004)
    opt = OPTIMIZERS[optimizer](model)
    for step in range(steps):
        opt.zero_grad()
        loss(model, step, rank).backward()
        opt.step()
    return flat(model)


def osp(rank: int, optimizer: str, steps: int, views: bool = False, **arguments: Any) -> dict[str, Any]:
    """Parameters and optimizer's state after a training with OSP, and what the rank computed with in each step."""
    model = DistributedDataParallel(net(), bucket_cap_mb=0.004, gradient_as_bucket_view=views)
    opt = OPTIMIZERS[optimizer](model)
    osp = OSP(model, opt, **arguments)
    seen = []
    for step in range(steps):
        seen.append(flat(model))
        osp.zero_grad()
        loss(model, step, rank).backward()
        osp.step()
    pending = osp.pending
    osp.flush()
    return {"p": flat(model), "state": momenta(opt), "seen": seen, "pending": pending, "share": osp.share}


def accumulated(rank: int, without_sync: bool) -> Tensor:
    """Two backward passes before each step."""
    model = DistributedDataParallel(net())
    osp = OSP(model, OPTIMIZERS["momentum"](model), deferred=0.6, block=16)
    for step in range(6):
        osp.zero_grad()
        with model.no_sync() if without_sync else contextlib.nullcontext():
            loss(model, 2 * step, rank).backward()
        loss(model, 2 * step + 1, rank).backward()
        osp.step()
    osp.flush()
    return flat(model)


def scheduled(rank: int) -> Tensor:
    """The learning rate is halved after each step."""
    model = DistributedDataParallel(net())
    opt = OPTIMIZERS["momentum"](model)
    osp = OSP(model, opt, deferred=0.6, block=16)
    schedule = torch.optim.lr_scheduler.ExponentialLR(opt, 0.5)
    for step in range(6):
        osp.zero_grad()
        loss(model, step, rank).backward()
        osp.step()
        schedule.step()
    osp.flush()
    return flat(model)


def resumed(rank: int, optimizer: str) -> tuple[Tensor, Tensor]:
    """Twelve steps with a flush after six: in one go, and with other objects after the flush."""
    results = []
    for resume in (False, True):
        model = DistributedDataParallel(net())
        opt = OPTIMIZERS[optimizer](model)
        osp = OSP(model, opt, deferred=0.7, block=16)
        for step in range(12):
            if step == 6:
                osp.flush()
            if step == 6 and resume:
                saved = copy.deepcopy((model.state_dict(), osp.state_dict()))
                model = DistributedDataParallel(net())
                model.load_state_dict(saved[0])
                opt = OPTIMIZERS[optimizer](model)
                osp = OSP(model, opt, deferred=0.7, block=16)
                osp.load_state_dict(saved[1])
            osp.zero_grad()
            loss(model, step, rank).backward()
            osp.step()
        osp.flush()
        results.append(flat(model))
    return results[0], results[1]


def reloaded(rank: int) -> tuple[Tensor, Tensor]:
    """The same six steps after a state, twice: the second time the objects load it after a flush."""
    model = DistributedDataParallel(net())
    opt = OPTIMIZERS["momentum"](model)
    osp = OSP(model, opt, deferred=0.7, block=16)
    results: list[Tensor] = []
    saved: Any = None
    for first in (0, 6, 6):
        if len(results) == 2 and saved:
            model.load_state_dict(saved[0])
            osp.load_state_dict(saved[1])
        for step in range(first, first + 6):
            osp.zero_grad()
            loss(model, step, rank).backward()
            osp.step()
        osp.flush()
        if not results:
            saved = copy.deepcopy((model.state_dict(), osp.state_dict()))
        results.append(flat(model))
    return results[1], results[2]


def agreed(rank: int, budget: float) -> tuple[float | None, float | None, list[str]]:
    """The share before and after warm-up, where rank 0 computes 2 s, rank 1 computes 1 s, and a reduction takes 4 s."""
    lines: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(record.getMessage())  # type: ignore[method-assign]
    logger = logging.getLogger("tributary.torch.osp")
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    model = DistributedDataParallel(net())
    opt = OPTIMIZERS["sgd"](model)
    osp = OSP(model, opt, budget=budget, warmup=3)
    c = 2.0 if rank == 0 else 1.0
    # The medians are c and 4. A flush is before the third step, which has no sample then.
    clock = Clock([None, c, None, 100.0, c / 2], [4.0, 4.0, 9.0, 1.0, 400.0])
    shares = []
    with mock.patch("tributary.torch.osp.time", clock):
        for step in range(5):
            if step == 2:
                osp.flush()
            shares.append(osp.share)
            osp.zero_grad()
            loss(model, step, rank).backward()
            osp.step()
    logger.removeHandler(handler)
    return shares[-1], osp.share, lines


class Clock:
    """Stands in for the module time. None is a step after other things than a step, which OSP does not time."""

    def __init__(self, computations: list[float | None], communications: list[float]) -> None:
        self.now = 0.0
        self.gaps: list[float] = []
        for computation, communication in zip(computations, communications, strict=True):
            # The end of the computation if it is timed, begin and end of the reduction, the step's end.
            self.gaps += [1000.0] if computation is None else [computation, 0.0]
            self.gaps += [communication, 0.0]

    def monotonic(self) -> float:
        self.now += self.gaps.pop(0)
        return self.now


def kinds(rank: int) -> Tensor:
    """A model with parameters of two dtypes."""

    class Two(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = nn.Linear(64, 20), nn.Linear(20, 10).double()

        def forward(self, x: Tensor) -> Tensor:
            y: Tensor = self.b(self.a(x).relu().double())
            return y

    torch.manual_seed(3)
    model = DistributedDataParallel(Two())
    osp = OSP(model, OPTIMIZERS["adamw"](model), deferred=0.5, block=8)
    for step in range(5):
        osp.zero_grad()
        loss(model, step, rank).backward()
        osp.step()
    osp.flush()
    return torch.cat([p.detach().reshape(-1).double() for p in model.parameters()])


def images(rank: int, order: torch.memory_format) -> Tensor:
    """A convolution in a memory format. All of its gradient is deferred, so the blocks do not matter."""
    torch.manual_seed(5)
    inner = nn.Sequential(nn.Conv2d(3, 6, 3), nn.ReLU(), nn.Conv2d(6, 4, 3), nn.Flatten(), nn.Linear(64, 10))
    model = DistributedDataParallel(inner.to(memory_format=order))
    osp = OSP(model, OPTIMIZERS["momentum"](model), deferred=1.0, block=7)
    for step in range(5):
        generator = torch.Generator().manual_seed(1000 * step + rank)
        x = torch.randn(8, 3, 8, 8, generator=generator).to(memory_format=order)
        osp.zero_grad()
        cross_entropy(model(x), torch.randint(0, 10, (8,), generator=generator)).backward()
        osp.step()
    osp.flush()
    return flat(model)


def changed(rank: int, what: str) -> str:
    """Rank 1 changes something behind OSP's back. Returns the error of flush."""
    model = DistributedDataParallel(net())
    # A learning rate of 0: ranks that choose unlike blocks have equal parameters still.
    opt = torch.optim.SGD(model.parameters(), lr=0.0 if what == "choice" else 0.1, momentum=0.9)
    osp = OSP(model, opt, deferred=0.0 if what == "gradient" else 0.5, block=16)
    for step in range(4):
        if what == "choice" and step == 2:
            osp.flush()
            state = osp.state_dict()
            if rank == 1:  # the least and the most important block of 0.weight change places
                values = state["importance"][: 64 * 37 // 16]
                low, high = values.argmin(), values.argmax()
                values[low], values[high] = values[high].item(), values[low].item()
            osp.load_state_dict(state)
        osp.zero_grad()
        loss(model, step, rank).backward()
        if what == "gradient" and rank == 1:
            nn.utils.clip_grad_norm_(model.parameters(), 1e-3)
        osp.step()
    if what == "parameter" and rank == 1:
        osp.flush()
        with torch.no_grad():
            next(model.parameters()).add_(1)
    elif what == "parameter":
        osp.flush()
    try:
        osp.flush()
    except RuntimeError as error:
        return str(error)
    return ""


def grouped(rank: int, group: dist.ProcessGroup, second: dist.ProcessGroup | None) -> Tensor:
    """A model of some ranks, or of all in another order."""
    model = DistributedDataParallel(net(), process_group=group)
    osp = OSP(model, OPTIMIZERS["momentum"](model), deferred=0.5, block=16, group=second)
    for step in range(5):
        osp.zero_grad()
        loss(model, step, rank).backward()
        osp.step()
    osp.flush()
    return flat(model)


def two(rank: int) -> dict[Any, Any]:
    """All scenarios of two ranks."""
    results: dict[Any, Any] = {}
    for name in OPTIMIZERS:
        results["ddp", name] = ddp(rank, name, 8)
        results["nothing", name] = osp(rank, name, 8, deferred=0.0)
        results["0.6", name] = osp(rank, name, 8, deferred=0.6, block=16)
    results["all"] = osp(rank, "momentum", 8, deferred=1.0, block=16)
    results["views"] = osp(rank, "momentum", 8, deferred=0.6, block=16, views=True)
    results["nothing, views"] = osp(rank, "momentum", 8, deferred=0.0, views=True)
    results["stale"] = osp(rank, "momentum", 8, deferred=0.6, block=16, control="stale")
    results["drop"] = osp(rank, "momentum", 8, deferred=0.6, block=16, control="drop")
    results["warm-up"] = osp(rank, "momentum", 8, warmup=100)
    results["accumulated"] = accumulated(rank, False)
    # On rank 0, stage two never ends before the step; on rank 1, always before the first bucket.
    with mock.patch("tributary.torch.osp._Stage.over", lambda stage: rank == 1 and (stage.wait() or True)):
        results["unlike"] = osp(rank, "momentum", 8, deferred=0.6, block=16)
        results["unlike, accumulated"] = accumulated(rank, False)
    results["accumulated, no_sync"] = accumulated(rank, True)
    results["scheduled"] = scheduled(rank)
    results["resumed"] = {name: resumed(rank, name) for name in ("momentum", "adamw")}
    results["reloaded"] = reloaded(rank)
    results["agreed"] = {budget: agreed(rank, budget) for budget in (0.9, 0.2)}
    results["kinds"] = kinds(rank)
    results["images"] = [images(rank, order) for order in (torch.contiguous_format, torch.channels_last)]
    results["changed"] = {what: changed(rank, what) for what in ("parameter", "gradient", "choice", "nothing")}
    return results


def three(rank: int) -> dict[Any, Any]:
    """Three ranks: 1/3 is no binary number, and the order of additions depends on the buckets."""
    # Rank 1 has no part in the half, and rank 2 is the first. OSP takes the second group for stage two.
    half, second = (dist.new_group([2, 0], sort_ranks=False) for _ in range(2))
    backwards = dist.new_group([2, 1, 0], sort_ranks=False)
    assert dist.get_world_size() == 3
    results: dict[Any, Any] = {}
    for name in ("momentum", "adamw"):
        results["ddp", name] = ddp(rank, name, 8)
        results["nothing", name] = osp(rank, name, 8, deferred=0.0)["p"]
        results["deferred", name] = osp(rank, name, 8, deferred=0.8, block=16)["p"]
    results["backwards"] = grouped(rank, backwards, None)
    if rank != 1:
        results["half"] = grouped(rank, half, second)
        try:
            grouped(rank, half, None)
        except ValueError as error:
            results["refused"] = str(error)
    # Groups of all ranks still find one another.
    everyone = dist.new_group(timeout=datetime.timedelta(minutes=2))
    later = torch.ones(1)
    dist.all_reduce(later, group=everyone)
    results["later"] = later.item()
    return results
