"""OSP's ranks in one process, written from the formulas of OSP.md. It shares no code with the package.

All tensors are flat: shape (elements,). The arithmetic is float32, operation by operation as PyTorch's
optimizers do it, so that bits can be compared.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

State = dict[str, Any]  # v, m: Tensor; t: int
# p, g, state -> p and state after the update. It changes neither argument.
Rule = Callable[[Tensor, Tensor, State], tuple[Tensor, State]]


def sgd(
    lr: float,
    momentum: float = 0.0,
    weight_decay: float = 0.0,
    dampening: float = 0.0,
    nesterov: bool = False,
) -> Rule:
    """Stochastic gradient descent, as torch.optim.SGD documents it."""

    def rule(p: Tensor, g: Tensor, state: State) -> tuple[Tensor, State]:
        if weight_decay:
            g = g.add(p, alpha=weight_decay)
        if momentum:
            before = state.get("v")
            v = g.clone() if before is None else before.mul(momentum).add(g, alpha=1 - dampening)
            state = {"v": v}
            g = g.add(v, alpha=momentum) if nesterov else v
        return p.add(g, alpha=-lr), state

    return rule


def adam(
    lr: float, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8, weight_decay: float = 0.0
) -> Rule:
    """Adam (Kingma and Ba, 2015), as torch.optim.Adam documents it: the decay is part of the gradient."""
    without = adamw(lr, betas, eps, 0.0)
    return lambda p, g, state: without(p, g.add(p, alpha=weight_decay), state)


def adamw(
    lr: float, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8, weight_decay: float = 1e-2
) -> Rule:
    """AdamW (Loshchilov and Hutter, 2019), as torch.optim.AdamW documents it."""

    def rule(p: Tensor, g: Tensor, state: State) -> tuple[Tensor, State]:
        t = state.get("t", 0) + 1
        m = state.get("m", torch.zeros_like(p)).lerp(g, 1 - betas[0])
        v = state.get("v", torch.zeros_like(p)).mul(betas[1]).addcmul(g, g, value=1 - betas[1])
        p = p.mul(1 - lr * weight_decay)
        size = lr / (1 - betas[0] ** t)
        denominator = (v.sqrt() / math.sqrt(1 - betas[1] ** t)).add(eps)
        return p.addcdiv(m, denominator, value=-size), {"t": t, "m": m, "v": v}

    return rule


@dataclass
class Late:
    """A step whose deferred part has not arrived."""

    elements: Tensor  # bool: which are deferred
    mean: Tensor
    before: State  # the state before the step
    rule: Rule  # that of the step; a scheduler may change the learning rate afterwards


class Reference:
    """All ranks of a training with OSP.

    sizes are the elements of the model's parameters, in their order; deferred is the share of the bytes.
    """

    def __init__(
        self, start: Tensor, sizes: list[int], rule: Rule, deferred: float, block: int, control: str | None = None
    ) -> None:
        self.p = start.clone()  # the part that all ranks hold
        self.state: State = {}
        self.rule = rule
        self.deferred = deferred
        self.control = control
        self.late: Late | None = None
        self.own: list[Tensor] = []  # what each rank computes with, while a correction is pending
        self.importance: list[float] | None = None
        self.blocks: list[range] = []  # of elements
        place = 0
        for size in sizes:
            for first in range(0, size, block):
                self.blocks.append(range(place + first, place + min(first + block, size)))
            place += size

    def seen(self, rank: int) -> Tensor:
        """What a rank computes with."""
        return self.own[rank] if self.late else self.p

    def step(self, gradients: list[Tensor]) -> None:
        """One step, with the gradient of each rank."""
        shares = [g * (1 / len(gradients)) for g in gradients]
        mean = shares[0]
        for other in shares[1:]:
            mean = mean + other
        self.settle()
        elements = self._choose()
        if self.control != "drop":
            self._weigh(mean, torch.ones_like(elements))
        else:
            self._weigh(mean, ~elements)
        updated, state = self.rule(self.p, mean, self.state)
        if not elements.any():
            self.p, self.state = updated, state
            return
        held = {k: torch.where(elements, self.state[k], v) if isinstance(v, Tensor) else v for k, v in state.items()}
        self.own = []
        for g in gradients:
            guess, _ = self.rule(self.p, g, self.state)
            self.own.append(torch.where(elements, self.p if self.control else guess, updated))
        late = Late(elements, mean, self.state, self.rule)
        self.p, self.state = torch.where(elements, self.p, updated), held
        self.late = None if self.control == "drop" else late

    def settle(self) -> None:
        """Stage two has arrived."""
        late, self.late = self.late, None
        if late is None:
            return
        updated, state = late.rule(self.p, late.mean, late.before)
        self.p = torch.where(late.elements, updated, self.p)
        for key, value in state.items():
            if isinstance(value, Tensor):
                self.state[key] = torch.where(late.elements, value, self.state[key])

    def _weigh(self, mean: Tensor, elements: Tensor) -> None:
        products = (self.p * mean).abs().double()
        if self.importance is None:
            self.importance = [0.0] * len(self.blocks)
        for i, block in enumerate(self.blocks):
            if elements[block.start]:
                self.importance[i] = products[block.start : block.stop].sum().item()

    def _choose(self) -> Tensor:
        """The least important blocks, at most a share of all elements."""
        chosen = torch.zeros_like(self.p, dtype=torch.bool)
        if self.importance is not None:
            room = self.deferred * len(self.p)
            for i in sorted(range(len(self.blocks)), key=self.importance.__getitem__):
                room -= len(self.blocks[i])
                if room < 0:
                    break
                chosen[self.blocks[i].start : self.blocks[i].stop] = True
        return chosen
