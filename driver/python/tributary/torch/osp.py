"""OSP: gradients in two stages, the second one hidden behind the next computation.

OSP.md has definition, formulas and limits.
"""

import hashlib
import logging
import statistics
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
import torch.distributed as dist
from torch import Tensor
from torch._C._distributed_c10d import GradBucket
from torch.nn.parallel import DistributedDataParallel
from torch.optim import SGD, Adam, AdamW, Optimizer

from ._osp_blocks import Layout, Part, flat, memory_format

_SHADOWS: dict[type[Optimizer], Callable[[list[Tensor]], Optimizer]] = {SGD: SGD, Adam: Adam, AdamW: AdamW}
_log = logging.getLogger(__name__)


@dataclass
class _Late:
    """What one parameter has in stage two."""

    parameter: int
    part: Part
    before: Tensor  # the parameter's elements before the step: shape (elements,)
    state: dict[str, Tensor]  # the optimizer's, before the step: elements, or a tensor with one element
    gradient: Tensor  # a piece of a message: the rank's own divided by the ranks, after stage two the mean


@dataclass
class _Stage:
    """Messages that were sent, and what is in them."""

    works: list[dist.Work] = field(default_factory=list)
    late: list[_Late] = field(default_factory=list)
    means: list[tuple[int, Part, Tensor]] = field(default_factory=list)  # of stage one: with the parameter's number
    messages: list[Tensor] = field(default_factory=list)  # of stage two
    groups: list[dict[str, Any]] = field(default_factory=list)  # the optimizer's settings in this step

    def wait(self) -> None:
        while self.works:
            self.works[0].wait()
            self.works.pop(0)

    def over(self) -> bool:
        return all(work.is_completed() for work in self.works)


class OSP:
    """Trains a DDP model in two stages: a communication hook, and a wrapper of its optimizer.

        model = DistributedDataParallel(net)
        osp = OSP(model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9))
        for x, y in batches:
            osp.zero_grad()
            loss(model(x), y).backward()
            osp.step()
        osp.flush()

    Every rank reduces the important blocks of the gradient before the step, and the others during the next
    computation. Meanwhile it computes with its own gradient in their place.

    budget is the largest share of the gradient's bytes that may be deferred, 0 to 1. In `warmup` steps all
    ranks measure how much a computation hides; the least of all ranks and the budget is what they defer.
    deferred fixes the share instead; 0 is DDP, bit for bit. block is the elements of a block, by default 32
    or more, so that the model has about 4,096. group is a process group for stage two, with the ranks of the
    model's in the same order; by default OSP makes one, which needs all ranks in the model's group.

    control is for experiments that must fail, and not for users: "stale" computes with deferred blocks as
    they were before the step, "drop" never sends them.

    Errors: TypeError for a model without DDP or an optimizer that is not SGD, Adam or AdamW; ValueError for
    numbers out of range, and for a model that OSP does not support. The sentence has the reason.

    All ranks make the same calls with the same arguments. One thread at a time may use an OSP.
    """

    def __init__(
        self,
        ddp_model: DistributedDataParallel,
        optimizer: Optimizer,
        *,
        budget: float = 0.9,
        deferred: float | None = None,
        block: int | None = None,
        warmup: int = 5,
        group: dist.ProcessGroup | None = None,
        control: Literal["stale", "drop"] | None = None,
    ) -> None:
        self._parameters = _check(ddp_model, optimizer)
        _check_numbers(budget, deferred, block, warmup, control)
        self._model = ddp_model
        self._optimizer = optimizer
        self._budget = budget
        self._share = deferred
        self._fixed = deferred is not None
        self._warmup = warmup
        self._control = control
        self._index: dict[Tensor, int] = {p: i for i, (_, p) in enumerate(self._parameters)}
        self._orders = [_order(name, p) for name, p in self._parameters]
        self._layout = Layout([p for _, p in self._parameters], block)
        self._importance: Tensor | None = None  # of the last sums: float64, shape (blocks,)
        self._first: dist.ProcessGroup = ddp_model.process_group
        self._second = group or _like(self._first)
        if dist.get_process_group_ranks(self._second) != dist.get_process_group_ranks(self._first):
            raise ValueError("OSP: group has other ranks than the model's process group, or another order")
        self._ranks = dist.get_world_size(self._first)

        # Within a step:
        self._chosen: Tensor | None = None  # blocks that this step defers, as soon as they are known
        self._buckets: list[tuple[list[int], list[Tensor]]] = []  # whose stage one has not started
        self._held: list[tuple[Tensor, torch.futures.Future[Tensor]]] = []  # the same, in warm-up
        self._one = _Stage()
        self._reduced = False  # all buckets have arrived since the last step
        self._stepping = False
        # Between steps:
        self._two: _Stage | None = None
        self._history = b""  # a digest of all choices

        self._resumed: float | None = None  # when the computation began, in seconds
        self._computed = self._sent = 0.0  # in this step
        self._samples: list[tuple[float, float]] = []  # T_c and M/b of each step of warm-up, in seconds

        ddp_model.register_comm_hook(self, _hook)
        # A shadow of the optimizer applies the deferred means.
        self._shadow: Optimizer = _SHADOWS[type(optimizer)]([torch.zeros(1)])
        ddp_model.module.register_state_dict_pre_hook(lambda *_: self._refuse_pending("state_dict"))
        ddp_model.module.register_load_state_dict_pre_hook(lambda *_: self._refuse_pending("load_state_dict"))
        ddp_model.module.register_forward_pre_hook(self._before_forward)
        optimizer.register_state_dict_pre_hook(lambda *_: self._refuse_pending("state_dict"))
        optimizer.register_load_state_dict_pre_hook(lambda *_: self._refuse_pending("load_state_dict"))
        optimizer.register_step_pre_hook(self._before_step)

    @property
    def share(self) -> float | None:
        """The share of the gradient's bytes that may be deferred, 0 to 1; None in warm-up."""
        return self._share

    @property
    def pending(self) -> bool:
        """Whether corrections are pending: ranks hold different parameters, and flush is due."""
        return self._two is not None

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Clears the gradients, as Optimizer.zero_grad does."""
        self._optimizer.zero_grad(set_to_none)

    @torch.no_grad()
    def step(self) -> None:
        """Waits for both stages' sums that are due, updates the parameters, and starts the next stage two.

        Afterwards a parameter's deferred blocks have the values of this rank's own gradient.

        Errors: RuntimeError without a backward pass that DDP reduced, or where a parameter has no gradient;
        the process group's errors.
        """
        if not self._reduced:
            raise RuntimeError("OSP: step() needs a backward pass before it, outside of no_sync()")
        self._reduced = False
        if len(self._index) != sum(len(group["params"]) for group in self._optimizer.param_groups):
            raise RuntimeError("OSP: the optimizer has got or lost parameters since OSP was made")
        for name, p in self._parameters:
            if p.grad is None:
                raise RuntimeError(f"OSP: parameter {name} has no gradient in this step; every step needs all")
        chosen = self._choice()
        self._send_buckets(chosen)
        self._settle()
        for i, part, mean in self._one_means():
            part.put(self._flat_gradient(i), mean)
        if self._share != 0:
            self._weigh(~chosen)
        two = self._snapshot(chosen) if chosen.any() else None
        self._stepping = True
        try:
            self._optimizer.step()
        finally:
            self._stepping = False
        if two:
            self._send_late(two)
        self._chosen = None
        self._measure()

    @torch.no_grad()
    def flush(self) -> None:
        """Waits for stage two and applies it: all ranks then hold the same bits, and no correction is pending.

        All ranks call it. It compares a digest of the parameters and of all choices.

        Errors: RuntimeError between a backward pass and step, or if ranks hold different bits; the process
        group's errors.
        """
        if self._reduced:
            raise RuntimeError("OSP: flush() between a backward pass and step(); call step() first")
        self._settle()
        self._resumed = None
        digest = hashlib.blake2b(self._history, digest_size=16)
        for _, p in self._parameters:
            digest.update(p.detach().contiguous().view(-1).view(torch.uint8).numpy().data)
        # Sums of 16-bit numbers are exact in float32. They are as many times a rank's own as there are ranks
        # exactly if all ranks have the same.
        own = torch.frombuffer(bytearray(digest.digest()), dtype=torch.uint16).to(torch.float32)
        total = own.clone()
        dist.all_reduce(total, group=self._first)
        if not torch.equal(total, own * self._ranks):
            raise RuntimeError(
                "OSP: ranks hold different parameters, or chose different blocks. Was a gradient changed between "
                "backward() and step(), or a parameter outside of step()? Or do ranks run on unlike processors?"
            )

    def state_dict(self) -> dict[str, Any]:
        """Returns the optimizer's state and OSP's. RuntimeError if a correction is pending: flush first."""
        self._refuse_pending("state_dict")
        return {
            "optimizer": self._optimizer.state_dict(),
            "block": self._layout.block,
            "importance": None if self._importance is None else self._importance.clone(),
            "share": self._share,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restores what state_dict returned. All ranks load the same.

        A share that the constructor fixed stays. Errors: RuntimeError if a correction is pending; ValueError
        for a state of other blocks.
        """
        self._refuse_pending("load_state_dict")
        importance = state["importance"]
        if state["block"] != self._layout.block or (
            importance is not None and importance.shape != self._layout.sizes.shape
        ):
            raise ValueError("OSP: the state has other blocks; load it with the same model and block")
        self._optimizer.load_state_dict(state["optimizer"])
        self._importance = None if importance is None else importance.clone()
        self._chosen = None
        if not self._fixed:
            self._share = state["share"]

    def _receive(self, bucket: GradBucket) -> torch.futures.Future[Tensor]:
        """Takes a bucket of the backward pass, and starts its stage one if that is possible already."""
        buffer = bucket.buffer()
        if buffer.is_sparse:
            raise RuntimeError("OSP: a gradient is sparse; use dense gradients")
        if bucket.index() == 0:
            self._held.clear()
            # A second backward pass in this step replaces what the first one reduced. Other ranks may have
            # sent the first one's buckets already, so this rank sends as many.
            if self._buckets:
                self._send_buckets(self._choice())
        self._reduced = bucket.is_last()
        if self._share is None:
            return self._hold(buffer)
        # Stage two may still run. Then the choice is not known, and the bucket waits.
        if self._chosen is None and (self._two is None or self._two.over()):
            self._choice()
        if self._chosen is not None and not self._chosen.any():
            work = dist.all_reduce(buffer.mul_(1 / self._ranks), group=self._first, async_op=True)
            assert work is not None
            return work.get_future().then(lambda done: done.value()[0])
        self._buckets.append(([self._index[p] for p in bucket.parameters()], bucket.gradients()))
        if self._chosen is not None:
            self._send_buckets(self._chosen)
        return _done(buffer)

    def _hold(self, buffer: Tensor) -> torch.futures.Future[Tensor]:
        """Keeps a bucket until the computation is over, then times the reduction of all."""
        future: torch.futures.Future[Tensor] = torch.futures.Future()
        self._held.append((buffer, future))
        if self._reduced:
            if self._resumed is not None:
                self._computed += time.monotonic() - self._resumed
            dist.all_reduce(torch.zeros(1), group=self._first)  # ranks begin together
            begin = time.monotonic()
            works = []
            for held, _ in self._held:
                works.append(dist.all_reduce(held.mul_(1 / self._ranks), group=self._first, async_op=True))
            for work in works:
                assert work is not None
                work.wait()
            end = time.monotonic()
            self._sent = end - begin
            if self._resumed is not None:
                self._resumed = end
            for held, waiting in self._held:
                waiting.set_result(held)
            self._held.clear()
        return future

    def _choice(self) -> Tensor:
        """Chooses the blocks to defer, once a step, when the last step's sums have arrived."""
        if self._chosen is None:
            if self._two is not None:
                self._two.wait()
                for late in self._two.late:
                    self._record(late.parameter, late.part, late.before, late.gradient)
            if self._importance is None or not self._share:
                self._chosen = torch.zeros(len(self._layout.sizes), dtype=torch.bool)
            else:
                self._chosen = self._layout.least(self._importance, self._share)
                self._history = hashlib.blake2b(self._history + self._chosen.numpy().tobytes()).digest()
        return self._chosen

    def _send_buckets(self, chosen: Tensor) -> None:
        """Starts stage one of the buckets that wait."""
        for parameters, gradients in self._buckets:
            parts = [self._layout.part(i, ~chosen) for i in parameters]
            pieces = [
                part.take(gradient.view(-1))  # a bucket has the parameter's order in memory
                for part, gradient in zip(parts, gradients, strict=True)
            ]
            message = torch.cat(pieces).mul_(1 / self._ranks)
            if message.numel() == 0:
                continue
            work = dist.all_reduce(message, group=self._first, async_op=True)
            assert work is not None
            self._one.works.append(work)
            means = message.split_with_sizes([piece.numel() for piece in pieces])
            self._one.means += zip(parameters, parts, means, strict=True)
        self._buckets.clear()

    def _one_means(self) -> list[tuple[int, Part, Tensor]]:
        """Waits for stage one, and returns its means."""
        one, self._one = self._one, _Stage()
        one.wait()
        return one.means

    def _flat_gradient(self, i: int) -> Tensor:
        gradient = self._parameters[i][1].grad
        assert gradient is not None
        return flat(gradient, self._orders[i])

    def _flat_parameter(self, i: int) -> Tensor:
        return flat(self._parameters[i][1].detach(), self._orders[i])

    def _record(self, i: int, part: Part, values: Tensor, means: Tensor) -> None:
        """Notes the importance of a part's blocks: Σ|p·g|."""
        assert self._importance is not None
        places = part.rows
        if part.tail:
            places = torch.cat((places, torch.tensor([self._importance[self._layout.of(i)].numel() - 1])))
        self._importance[self._layout.of(i)][places] = part.sums((values * means).abs_())

    def _weigh(self, blocks: Tensor) -> None:
        """Notes the importance of blocks whose means are in the gradients."""
        if self._importance is None:
            self._importance = torch.zeros(len(self._layout.sizes), dtype=torch.float64)
        for i in range(len(self._parameters)):
            part = self._layout.part(i, blocks)
            self._record(i, part, part.take(self._flat_parameter(i)), part.take(self._flat_gradient(i)))

    def _snapshot(self, chosen: Tensor) -> _Stage:
        """Copies what the step is about to overwrite in deferred blocks."""
        two = _Stage(groups=[_copy(group) for group in self._optimizer.param_groups])
        messages: dict[torch.dtype, list[tuple[int, Part, Tensor]]] = defaultdict(list)
        for i, (_, p) in enumerate(self._parameters):
            part = self._layout.part(i, chosen)
            if part.tail or part.rows.numel():
                messages[p.dtype].append((i, part, part.take(self._flat_gradient(i))))
        for pieces in messages.values():
            message = torch.cat([piece for _, _, piece in pieces]).mul_(1 / self._ranks)
            for (i, part, _), gradient in zip(pieces, message.split_with_sizes([g.numel() for _, _, g in pieces]), strict=True):
                p = self._parameters[i][1]
                state = {
                    key: part.take(flat(value, self._orders[i])) if value.shape == p.shape else value.clone()
                    for key, value in self._optimizer.state.get(p, {}).items()
                    if isinstance(value, Tensor)
                }
                two.late.append(_Late(i, part, part.take(self._flat_parameter(i)), state, gradient))
            two.messages.append(message)
        return two

    def _send_late(self, two: _Stage) -> None:
        """Takes this rank's gradient out of the optimizer's state, and starts stage two."""
        for late in two.late:
            p = self._parameters[late.parameter][1]
            for key, value in self._optimizer.state.get(p, {}).items():
                if key in late.state and value.shape == p.shape:
                    late.part.put(flat(value, self._orders[late.parameter]), late.state[key])
            if self._control:
                late.part.put(self._flat_parameter(late.parameter), late.before)
        if self._control == "drop":
            return
        for message in two.messages:
            work = dist.all_reduce(message, group=self._second, async_op=True)
            assert work is not None
            two.works.append(work)
        self._two = two

    def _settle(self) -> None:
        """Waits for stage two, and replaces this rank's update of deferred blocks by that of the means."""
        if self._two is None:
            return
        if self._chosen is None:
            self._choice()
        two, self._two = self._two, None
        groups = []
        late = {item.parameter: item for item in two.late}
        stands: dict[int, Tensor] = {}
        self._shadow.state.clear()
        for group in two.groups:
            members = [i for i in (self._index[p] for p in group["params"]) if i in late]
            for i in members:
                stand = late[i].before
                stand.grad = late[i].gradient
                self._shadow.state[stand] = dict(late[i].state)
                stands[i] = stand
            if members:
                groups.append({**group, "params": [stands[i] for i in members]})
        self._shadow.param_groups = groups
        self._shadow.step()
        for i, stand in stands.items():
            part = late[i].part
            part.put(self._flat_parameter(i), stand)
            p = self._parameters[i][1]
            for key, value in self._shadow.state[stand].items():
                if isinstance(value, Tensor) and value.shape == stand.shape and self._optimizer.state[p][key].shape == p.shape:
                    part.put(flat(self._optimizer.state[p][key], self._orders[i]), value)
        self._shadow.state.clear()
        self._shadow.param_groups = []

    def _measure(self) -> None:
        """Ends a step of warm-up; after the last one, all ranks agree on the share."""
        if self._share is None:
            if self._resumed is not None:
                self._samples.append((self._computed, self._sent))
            if len(self._samples) == self._warmup:
                self._agree()
        self._computed = 0.0
        self._resumed = time.monotonic()

    def _agree(self) -> None:
        computation = statistics.median(c for c, _ in self._samples)
        communication = statistics.median(s for _, s in self._samples)
        fits = self._fits(computation, communication)
        agreed = torch.tensor(min(self._budget, fits), dtype=torch.float64)
        dist.all_reduce(agreed, dist.ReduceOp.MIN, group=self._first)
        self._share = agreed.item()
        _log.info(
            "OSP defers %.1f %% of %d bytes (budget %.1f %%). Here a computation takes %.2f ms, a reduction "
            "%.2f ms, so %.1f %% fit.",
            100 * self._share, self._layout.bytes, 100 * self._budget, 1e3 * computation, 1e3 * communication, 100 * fits,
        )  # fmt: skip

    @staticmethod
    def _fits(computation: float, communication: float) -> float:
        """The share of the gradient that a computation hides, T_c·b/M, at most 1. Times are in seconds."""
        return 1.0 if communication <= computation else computation / communication

    def _refuse_pending(self, call: str) -> None:
        if self._two is not None:
            raise RuntimeError(f"OSP: {call} while a correction is pending; call flush() first")

    def _before_forward(self, module: torch.nn.Module, _: object) -> None:
        if self._two is not None and not module.training and not torch.is_grad_enabled():
            raise RuntimeError("OSP: an evaluation while a correction is pending; call flush() first")

    def _before_step(self, *_: object) -> None:
        if not self._stepping:
            raise RuntimeError("OSP: call step() of OSP; it calls the optimizer's")


def _hook(osp: OSP, bucket: GradBucket) -> torch.futures.Future[Tensor]:
    return osp._receive(bucket)


def _done(value: Tensor) -> torch.futures.Future[Tensor]:
    future: torch.futures.Future[Tensor] = torch.futures.Future()
    future.set_result(value)
    return future


def _copy(group: dict[str, Any]) -> dict[str, Any]:
    """A copy of an optimizer's settings; a scheduler may change those that are tensors in place."""
    return {key: value.clone() if isinstance(value, Tensor) else value for key, value in group.items()}


def _like(group: dist.ProcessGroup) -> dist.ProcessGroup:
    """A new process group of the same ranks and backend. ValueError for a part of the ranks.

    PyTorch names groups by a counter of each rank. If a part of the ranks made a group here, later groups of
    all ranks would have two names, and wait for one another.
    """
    ranks = dist.get_process_group_ranks(group)
    if len(ranks) != dist.get_world_size():
        raise ValueError(
            "OSP: the model's process group is a part of the ranks; let all ranks call "
            f"dist.new_group({ranks}, sort_ranks=False), and pass the result as group"
        )
    made = dist.new_group(ranks, backend=dist.get_backend(group), sort_ranks=False, group_desc="OSP, stage two")
    assert isinstance(made, dist.ProcessGroup)
    return made


def _check(model: DistributedDataParallel, optimizer: Optimizer) -> list[tuple[str, torch.nn.Parameter]]:
    """Refuses models and optimizers that OSP does not support, and returns the parameters that it trains."""
    if not isinstance(model, DistributedDataParallel):
        raise TypeError(f"OSP: the model is a {type(model).__name__}; wrap it in DistributedDataParallel")
    if type(optimizer) not in _SHADOWS:
        raise TypeError(f"OSP: the optimizer is {type(optimizer).__name__}; OSP knows SGD, Adam and AdamW")
    for refused, name in (
        (model.find_unused_parameters, "find_unused_parameters; every parameter needs a gradient in every step"),
        (model.static_graph, "static_graph"),
        (model.mixed_precision is not None, "mixed_precision"),
        (bool(model.parameters_to_ignore), "parameters that DDP ignores"),
    ):
        if refused:
            raise ValueError(f"OSP: the model has {name}; OSP does not support that")
    for name, module in model.module.named_modules():
        if getattr(module, "sparse", False) is True:
            raise ValueError(f"OSP: the gradients of {name} are sparse; use dense gradients")
    parameters = [(name, p) for name, p in model.module.named_parameters() if p.requires_grad]
    owned = {p for group in optimizer.param_groups for p in group["params"]}
    for name, p in parameters:
        if p not in owned:
            raise ValueError(f"OSP: parameter {name} is missing in the optimizer; add it, or set requires_grad=False")
        if p.device.type != "cpu" or p.is_complex():
            raise ValueError(f"OSP: parameter {name} is {p.dtype} on {p.device}; OSP supports real numbers on the CPU")
    if len(owned) != len(parameters):
        raise ValueError("OSP: the optimizer has parameters that the model does not train")
    return parameters


def _check_numbers(budget: float, deferred: float | None, block: int | None, warmup: int, control: str | None) -> None:
    for name, share in (("budget", budget), ("deferred", deferred)):
        if share is not None and not 0 <= share <= 1:
            raise ValueError(f"OSP: {name} is {share}; it is a share of the gradient's bytes, 0 to 1")
    if block is not None and block < 1:
        raise ValueError(f"OSP: block is {block}; it is a number of elements, 1 or more")
    if warmup < 1:
        raise ValueError(f"OSP: warmup is {warmup}; it is a number of steps, 1 or more")
    if control not in (None, "stale", "drop"):
        raise ValueError(f"OSP: control {control!r} is unknown; it is 'stale' or 'drop'")


def _order(name: str, p: Tensor) -> torch.memory_format:
    order = memory_format(p)
    if order is None:
        raise ValueError(f"OSP: parameter {name} is not contiguous, nor in a channels_last format")
    return order
