"""Tensors as the arrays that a card sums."""

from collections.abc import Callable, Iterator

import torch

from .._arrays import Array, dtype_of
from ..errors import InputError

# NumPy has no bf16 and no fp8: arrays have their bits, and so have the tensors of the second column.
_FORMATS: dict[torch.dtype, tuple[str, torch.dtype | None]] = {
    torch.float32: ("fp32", None),
    torch.float16: ("fp16", None),
    torch.bfloat16: ("bf16", torch.uint16),
    torch.float8_e4m3fn: ("fp8e4m3", torch.uint8),
    torch.float8_e5m2: ("fp8e5m2", torch.uint8),
    torch.int32: ("int32", None),
}
_DTYPES = {name: dtype for dtype, (name, _) in _FORMATS.items()}


def format_of(tensor: torch.Tensor) -> str | None:
    """Returns the name of the format of a tensor's elements; None if no card has it."""
    found = _FORMATS.get(tensor.dtype)
    return found[0] if found else None


def array_of(tensor: torch.Tensor, apart: bool = False) -> tuple[Array, torch.Tensor]:
    """Returns a flat array, and the tensor whose memory it is: this one, or a copy without gaps, if it has gaps or
    is to be apart.
    """
    whole = tensor.detach()
    if not whole.is_contiguous() or whole.is_neg() or whole.is_conj():
        if any(step == 0 and size > 1 for step, size in zip(whole.stride(), whole.size(), strict=True)):
            raise InputError(
                f"tensor of shape {list(whole.shape)} and strides {list(whole.stride())}: several elements have one "
                "place in memory, and cannot take sums; pass tensor.contiguous()"
            )
        whole = whole.resolve_conj().resolve_neg().contiguous()
    elif apart:
        whole = whole.clone()
    bits = _FORMATS[whole.dtype][1]
    flat = whole.view(-1)
    return (flat if bits is None else flat.view(bits)).numpy(), whole


def place(tensor: torch.Tensor, result: str, apart: bool = False) -> tuple[Array, Array, Callable[[], None]]:
    """Returns the elements of a tensor, the array for their sums, and what brings the sums into the tensor.

    result is the format of sums. Without a copy, if the tensor has it and no gaps, and need not be apart.
    """
    source, whole = array_of(tensor, apart)
    target = tensor.detach()
    if whole.dtype == _DTYPES[result]:
        if whole.data_ptr() == target.data_ptr():
            return source, source, lambda: None
        return source, source, lambda: _copy(target, whole)
    sums = torch.empty(whole.shape, dtype=_DTYPES[result])
    out, _ = array_of(sums)
    assert out.dtype == dtype_of(result)
    return source, out, lambda: _copy(target, sums)


def _copy(target: torch.Tensor, source: torch.Tensor) -> None:
    with torch.no_grad():
        target.copy_(source)


def all_of(arguments: object) -> Iterator[torch.Tensor]:
    """Gives the tensors in lists of lists."""
    if isinstance(arguments, torch.Tensor):
        yield arguments
    elif isinstance(arguments, list | tuple):
        for each in arguments:
            yield from all_of(each)


def size_of(arguments: object) -> int:
    """Returns the bytes of the elements of all tensors in lists of lists."""
    return sum(tensor.numel() * tensor.element_size() for tensor in all_of(arguments))
