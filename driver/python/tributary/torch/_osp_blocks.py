"""Blocks of parameters: which there are, how they are taken out of a tensor, and which may wait."""

from dataclasses import dataclass

import torch
from torch import Tensor

# The model has about so many blocks, unless they would be shorter than _SHORTEST elements.
_BLOCKS = 4096
_SHORTEST = 32

_FORMATS = (torch.contiguous_format, torch.channels_last, torch.channels_last_3d)


@dataclass(frozen=True)
class Part:
    """Some blocks of one flat tensor of n elements.

    Block i holds the elements block·i to block·(i+1)-1. The last one may be shorter; it is called the tail.
    """

    block: int
    rows: Tensor  # int64, ascending: the whole blocks
    tail: bool  # whether the tail belongs to the part; False where n is a multiple of block

    def take(self, flat: Tensor) -> Tensor:
        """Returns a copy of the part's elements: shape (elements,)."""
        whole, rest = _split(flat, self.block)
        taken = whole.index_select(0, self.rows).view(-1)
        return torch.cat((taken, rest)) if self.tail else taken

    def put(self, flat: Tensor, values: Tensor) -> None:
        """Writes values, as take returned them, to the part's elements."""
        whole, rest = _split(flat, self.block)
        end = self.rows.numel() * self.block
        whole.index_copy_(0, self.rows, values[:end].view(-1, self.block))
        if self.tail:
            rest.copy_(values[end:])

    def sums(self, values: Tensor) -> Tensor:
        """Returns the sum of each of the part's blocks: float64, shape (blocks,)."""
        end = self.rows.numel() * self.block
        sums = values[:end].view(-1, self.block).sum(1, dtype=torch.float64)
        return torch.cat((sums, values[end:].sum(0, True, dtype=torch.float64))) if self.tail else sums


class Layout:
    """Cuts tensors into blocks of `block` elements, and numbers the blocks through all tensors.

    sizes are the bytes of the blocks: int64, shape (blocks,).
    """

    def __init__(self, tensors: list[Tensor], block: int | None) -> None:
        elements = sum(t.numel() for t in tensors)
        self.block = block or max(_SHORTEST, -(-elements // _BLOCKS))
        self.bytes = sum(t.numel() * t.element_size() for t in tensors)
        self._ends = []  # of the tensors' blocks
        sizes: list[Tensor] = []
        end = 0
        for t in tensors:
            count = -(-t.numel() // self.block)
            end += count
            self._ends.append(end)
            size = torch.full((count,), self.block * t.element_size())
            if t.numel() % self.block:
                size[-1] = t.numel() % self.block * t.element_size()
            sizes.append(size)
        self.sizes = torch.cat(sizes)
        self._tails = [t.numel() % self.block > 0 for t in tensors]

    def of(self, tensor: int) -> slice:
        """The numbers of a tensor's blocks."""
        return slice(self._ends[tensor - 1] if tensor else 0, self._ends[tensor])

    def part(self, tensor: int, chosen: Tensor) -> Part:
        """The blocks of a tensor among the chosen: bool, shape (blocks,)."""
        mine = chosen[self.of(tensor)]
        tail = bool(self._tails[tensor] and mine[-1])
        if self._tails[tensor]:
            mine = mine[:-1]
        return Part(self.block, mine.nonzero().view(-1), tail)

    def least(self, importance: Tensor, share: float) -> Tensor:
        """Chooses the least important blocks, together at most a share of all bytes: bool, shape (blocks,).

        Of equal blocks, those with low numbers come first. NaN counts as most important. The choice depends
        on the arguments alone, so equal arguments give equal choices on all ranks.
        """
        order = importance.nan_to_num(nan=torch.inf).argsort(stable=True)
        fits = self.sizes[order].cumsum(0) <= share * self.bytes
        chosen = torch.zeros(len(order), dtype=torch.bool)
        chosen[order[fits]] = True
        return chosen


def memory_format(tensor: Tensor) -> torch.memory_format | None:
    """The order of a tensor's elements in memory; None where they are not dense."""
    for order in _FORMATS:
        if tensor.dim() == {torch.channels_last: 4, torch.channels_last_3d: 5}.get(order, tensor.dim()):
            if tensor.is_contiguous(memory_format=order):
                return order
    return None


def flat(tensor: Tensor, order: torch.memory_format) -> Tensor:
    """A view of the elements in the order of memory: shape (elements,). RuntimeError if they have another order."""
    if order == torch.contiguous_format:
        return tensor.view(-1)
    return tensor.movedim(1, -1).view(-1)


def _split(tensor: Tensor, block: int) -> tuple[Tensor, Tensor]:
    end = tensor.numel() // block * block
    return tensor[:end].view(-1, block), tensor[end:]
