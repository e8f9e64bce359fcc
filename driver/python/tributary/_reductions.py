"""Reductions in progress."""

import ctypes
import math
import threading
import time
import weakref
from typing import Any, NamedTuple

from . import _library
from ._arrays import Array
from .errors import ForkedError, InputError, RunningError, TributaryError

# How long a wait keeps the interpreter from running the handler of a signal, in seconds.
_STEP = 0.1

# Reductions that nobody waits for, with the objects that they use.
_dropped: list[tuple[int, object]] = []
_dropping = threading.RLock()  # a collection of garbage may drop one in the thread that sweeps


class Partial(NamedTuple):
    """Sums that lack members: those of the flattened elements start to stop-1."""

    start: int
    stop: int
    ranks: tuple[int, ...]  # whose contributions are in the sums


class Pending:
    """A reduction that was started. It goes on by itself, and keeps its arrays alive until it is over.

    Until then, do not write its arrays, and do not read its result. A Pending that is dropped goes on, too.
    Several threads may use one.
    """

    def __init__(self, handle: int, result: Array, uses: object) -> None:
        self._handle = handle
        self._result = result
        self._finalizer = weakref.finalize(self, _drop, handle, (result, uses))

    def wait(self, timeout: float | None = None) -> Array:
        """Waits until the reduction is over, and returns the array of its result.

        timeout is in seconds, without a limit by default. After it RunningError is raised, and the
        reduction goes on. So it does after KeyboardInterrupt; wait again, or cancel.

        Errors: those of Member.all_reduce; RunningError; CanceledError.
        """
        end = math.inf if timeout is None else time.monotonic() + timeout
        while True:
            left = end - time.monotonic()
            try:
                _library.call("wait", self._handle, int(max(0, min(left, _STEP)) * 1e9))
                return self._result
            except RunningError as error:
                if left <= _STEP:
                    raise RunningError(f"the reduction goes on after {timeout} s; wait again") from error

    def done(self) -> bool:
        """Reports whether the reduction is over; wait then returns or raises at once."""
        try:
            _library.call("wait", self._handle, 0)
        except RunningError:
            return False
        except ForkedError:
            raise
        except TributaryError:
            pass
        return True

    def cancel(self) -> None:
        """Ends a running reduction, and returns when its arrays are the caller's again.

        With detach (Member.start), the job goes on, and the other members get their sums. Without it the
        job ends, or the member leaves it (partial). Afterwards wait raises CanceledError, unless the
        reduction was over before.
        """
        _library.quietly("cancel", self._handle)

    @property
    def partials(self) -> list[Partial]:
        """Which sums lack members, in the order of the elements; none before the reduction is over."""
        count = ctypes.c_size_t()
        _library.call("partials", self._handle, None, 0, count)
        entries = (_library.PartialSums * count.value)()
        _library.call("partials", self._handle, entries, count.value, count)
        return [Partial(e.start, e.stop, tuple(r for r in range(64) if e.ranks >> r & 1)) for e in entries]

    def _outcome(self) -> Array:
        """Waits for a reduction that nobody else knows: an interrupt cancels it."""
        try:
            return self.wait()
        except BaseException:
            self.cancel()
            raise


def start(
    name: str,
    handle: int,
    result: Array,
    source: Any,
    inputs: Any,
    counts: tuple[int, ...],
    op: str,
    detach: bool,
) -> Pending:
    """Starts a reduction by tributary_NAME."""
    if op not in _library.OPERATIONS:
        raise InputError(f"op: {op!r} is unknown; it is 'sum' or 'mean'")
    _sweep()
    pending = ctypes.c_void_p()
    flags = _library.DETACH if detach else 0
    _library.call(name, handle, result.ctypes.data, source, *counts, _library.OPERATIONS[op], flags, pending)
    return Pending(pending.value or 0, result, inputs)


def _drop(handle: int, uses: object) -> None:
    with _dropping:
        _dropped.append((handle, uses))
        _sweep()


def _sweep() -> None:
    """Closes dropped reductions that are over."""
    with _dropping:
        running = []
        while _dropped:
            handle, uses = _dropped.pop()
            try:
                _library.call("wait", handle, 0)
            except RunningError:
                running.append((handle, uses))
                continue
            except TributaryError:
                pass
            _library.quietly("pending_close", handle)
        _dropped.extend(running)
