"""Arrays that can be reduced, and the refusals of those that cannot."""

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from .errors import ArrayError, InputError

Array = NDArray[Any]

# Names and types of the formats, by tributary_format. NumPy has no bf16 and no fp8: their arrays are views
# of the bits.
FORMATS: dict[int, tuple[str, np.dtype[Any]]] = {
    1: ("fp32", np.dtype(np.float32)),
    2: ("bf16", np.dtype(np.uint16)),
    3: ("fp16", np.dtype(np.float16)),
    4: ("fp8e4m3", np.dtype(np.uint8)),
    5: ("fp8e5m2", np.dtype(np.uint8)),
    6: ("int32", np.dtype(np.int32)),
}


def dtype_of(format: str) -> np.dtype[Any]:
    """Returns the type of arrays of a format, by its name."""
    return next(dtype for name, dtype in FORMATS.values() if name == format)


def number_of(format: str | None) -> int:
    """Returns the tributary_format of a name; 0 for None."""
    if format is None:
        return 0
    for number, (name, _) in FORMATS.items():
        if name == format:
            return number
    raise InputError(
        f"format: {format!r} is unknown; formats are {', '.join(name for name, _ in FORMATS.values())}"
    )


def check(what: str, array: object, format: str, *, written: bool) -> Array:
    """Returns the array if it can be reduced in place; otherwise raises an ArrayError that names it."""
    if not isinstance(array, np.ndarray):
        raise ArrayError(f"{what}: it is a {type(array).__name__}; pass a numpy.ndarray")
    if isinstance(array, np.ma.MaskedArray):
        raise ArrayError(f"{what}: it is a masked array, and the card knows no masks; pass array.filled(0)")
    if not array.dtype.isnative:
        raise ArrayError(
            f"{what}: its bytes are swapped ({array.dtype.str}); "
            "pass array.astype(array.dtype.newbyteorder('='))"
        )
    wanted = dtype_of(format)
    if array.dtype != wanted:
        view = "" if format in ("fp32", "fp16", "int32") else f", with the bits of {format}"
        raise ArrayError(f"{what}: its dtype is {array.dtype}; the card needs {wanted}{view}")
    if array.size == 0:
        raise ArrayError(f"{what}: it is empty; a reduction has at least one element")
    if not array.flags.c_contiguous:
        raise ArrayError(f"{what}: it is not contiguous; pass numpy.ascontiguousarray(array)")
    if written and not array.flags.writeable:
        raise ArrayError(f"{what}: it is read-only; pass a copy, or another array as out")
    return array


def check_shape(what: str, array: Array, shape: tuple[int, ...]) -> None:
    """Refuses an array of another shape."""
    if array.shape != shape:
        raise ArrayError(
            f"{what}: its shape is {array.shape}, not {shape}; all arrays of a reduction have one shape"
        )


def result_for(array: Array, out: object, format: str, *, in_place: bool) -> Array:
    """Returns the array for the sums of arrays like this one."""
    if out is not None:
        result = check("out", out, format, written=True)
        check_shape("out", result, array.shape)
        return result
    wanted: DTypeLike = dtype_of(format)
    if in_place and array.dtype == wanted:
        return check("array", array, format, written=True)
    return np.empty(array.shape, wanted)
