"""One rank of throughput.py, in a network namespace of its own.

It reads commands from standard input, one JSON object a line, and replies with one line each.
"""

import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import launch  # noqa: F401  # the path of the package
import parameter_server
import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from tributary.torch import OSP

LAYERS = 8  # each has its own bucket in DDP
FORWARD = 1 / 3  # the share of the forward pass in a timed wait
LR = 1e-3
PORT = 29500


class Timer:
    """The timed wait of a computation. Its ends are fixed when it begins, as those of kernels on a GPU are."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._begin = 0.0

    def begin(self) -> None:
        self._begin = time.monotonic()

    def until(self, share: float) -> None:
        """Sleeps until a share of the computation is over."""
        time.sleep(max(0.0, self._begin + share * self.seconds - time.monotonic()))


class Wait(torch.autograd.Function):
    """A layer that computes nothing: it waits, and has a gradient."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, gradient: Tensor, timer: Timer, layer: int) -> Tensor:
        ctx.timer, ctx.layer, ctx.gradient = timer, layer, gradient
        timer.until(FORWARD * (layer + 1) / LAYERS)
        return x.clone()

    @staticmethod
    def backward(ctx: Any, x: Tensor) -> tuple[Tensor, Tensor, None, None, None]:
        ctx.timer.until(FORWARD + (1 - FORWARD) * (LAYERS - ctx.layer) / LAYERS)
        return x, ctx.gradient, None, None, None


class Waits(nn.Module):
    """Layers that wait. Gradients are random numbers, the same in every step."""

    def __init__(self, elements: int, seconds: float, rank: int) -> None:
        super().__init__()
        self.timer = Timer(seconds)
        self.weights = nn.ParameterList(torch.randn(elements // LAYERS) for _ in range(LAYERS))
        generator = torch.Generator().manual_seed(rank)
        self.gradients = [torch.randn(elements // LAYERS, generator=generator) for _ in range(LAYERS)]

    def forward(self, x: Tensor) -> Tensor:
        self.timer.begin()
        for layer, weight in enumerate(self.weights):
            x = Wait.apply(x, weight, self.gradients[layer], self.timer, layer)
        return x


def layers(elements: int) -> nn.Module:
    """Layers that compute."""
    width = int((elements // LAYERS) ** 0.5)
    return nn.Sequential(*(nn.Sequential(nn.Linear(width, width, bias=False), nn.Tanh()) for _ in range(LAYERS)))


@dataclass
class Computation:
    """A model and its input."""

    net: nn.Module
    x: Tensor

    def run(self, model: nn.Module) -> None:
        model(self.x).sum().backward()


def computation(command: dict[str, Any]) -> Computation:
    """The same model on all ranks."""
    torch.manual_seed(0)
    if command["computation"] == "wait":
        net: nn.Module = Waits(command["elements"], command["seconds"], dist.get_rank())
        return Computation(net, torch.zeros(1, requires_grad=True))
    net = layers(command["elements"])
    width = next(net.parameters()).shape[0]
    return Computation(net, torch.randn(command["batch"], width))


# A step, and what is to do at the end of a run.
Step = Callable[[], None]
Steps = tuple[Step, Callable[[], dict[str, Any]]]


def alone(work: Computation, seconds: list[float]) -> Steps:
    """The computation without traffic."""

    def step() -> None:
        work.net.zero_grad()
        work.run(work.net)

    return step, dict


def sync(work: Computation, seconds: list[float]) -> Steps:
    """BSP with an all-reduce after the computation. seconds gets the time of each."""
    parameters = list(work.net.parameters())
    optimizer = torch.optim.SGD(parameters, lr=LR)
    gradient = torch.zeros(sum(p.numel() for p in parameters))
    sizes = [p.numel() for p in parameters]

    def step() -> None:
        optimizer.zero_grad()
        work.run(work.net)
        torch.cat([_gradient(p).view(-1) for p in parameters], out=gradient)
        gradient.mul_(1 / dist.get_world_size())
        begin = time.monotonic()
        dist.all_reduce(gradient)
        seconds.append(time.monotonic() - begin)
        for p, mean in zip(parameters, gradient.split(sizes), strict=True):
            p.grad = mean.view(p.shape)
        optimizer.step()

    return step, dict


def server(work: Computation, synchronous: bool) -> Steps:
    """BSP or ASP with a parameter server."""
    parameters = list(work.net.parameters())
    sizes = [p.numel() for p in parameters]
    flat = torch.cat([p.detach().view(-1) for p in parameters])
    addresses = [(host, PORT + 1) for host in os.environ["RANK_HOSTS"].split()]
    ps = parameter_server.ParameterServer(dist.get_rank(), addresses, flat, LR, synchronous=synchronous)

    def step() -> None:
        work.net.zero_grad()
        work.run(work.net)
        new = ps.exchange(torch.cat([_gradient(p).view(-1) for p in parameters]))
        with torch.no_grad():
            for p, values in zip(parameters, new.split(sizes), strict=True):
                p.copy_(values.view(p.shape))

    def end() -> dict[str, Any]:
        dist.barrier()
        ps.close()
        return {}

    return step, end


def ddp(work: Computation, seconds: list[float]) -> Steps:
    """DDP, whose buckets are reduced during the backward pass."""
    model = _ddp(work)
    optimizer = torch.optim.SGD(model.parameters(), lr=LR)

    def step() -> None:
        optimizer.zero_grad()
        work.run(model)
        optimizer.step()

    return step, dict


def osp(work: Computation, group: dist.ProcessGroup) -> Steps:
    """OSP, as a user has it: it measures and agrees on the share in its first steps."""
    model = _ddp(work)
    osp = OSP(model, torch.optim.SGD(model.parameters(), lr=LR), group=group)

    def step() -> None:
        osp.zero_grad()
        work.run(model)
        osp.step()

    while osp.share is None:
        step()

    def end() -> dict[str, Any]:
        osp.flush()
        return {"share": osp.share}

    return step, end


def _gradient(p: Tensor) -> Tensor:
    assert p.grad is not None
    return p.grad


def _ddp(work: Computation) -> DistributedDataParallel:
    megabytes = sum(p.numel() for p in work.net.parameters()) * 4 / 2**20
    return DistributedDataParallel(work.net, bucket_cap_mb=megabytes / LAYERS)


def run(command: dict[str, Any], group: dist.ProcessGroup) -> dict[str, Any]:
    """Runs some steps of a variant, and returns the seconds that they took together."""
    work = computation(command)
    seconds: list[float] = []
    makers: dict[str, Callable[[], Steps]] = {
        "alone": lambda: alone(work, seconds),
        "sync": lambda: sync(work, seconds),
        "bsp": lambda: server(work, True),
        "asp": lambda: server(work, False),
        "ddp": lambda: ddp(work, seconds),
        "osp": lambda: osp(work, group),
    }
    step, end = makers[command["variant"]]()
    for _ in range(2):
        step()
    seconds.clear()
    dist.barrier()
    begin = time.monotonic()
    for _ in range(command["steps"]):
        step()
    total = time.monotonic() - begin
    return {"seconds": total, "reduction": statistics.median(seconds) if seconds else None, **end()}


def main() -> None:
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # other output of this process is no reply
    rank, hosts = int(sys.argv[1]), os.environ["RANK_HOSTS"].split()
    torch.set_num_threads(1)
    if "realtime" in sys.argv:  # threads that start from here on inherit it
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    print("{}", file=replies, flush=True)
    sys.stdin.readline()  # the network is there
    dist.init_process_group("gloo", init_method=f"tcp://{hosts[0]}:{PORT}", rank=rank, world_size=len(hosts))
    group = dist.new_group()
    assert isinstance(group, dist.ProcessGroup)
    for line in sys.stdin:
        print(json.dumps(run(json.loads(line), group)), file=replies, flush=True)
    os._exit(0)  # a peer may be gone already


if __name__ == "__main__":
    main()
