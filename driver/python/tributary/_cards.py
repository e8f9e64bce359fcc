"""Cards, jobs and members."""

import contextlib
import ctypes
import dataclasses
import weakref
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self

import numpy as np

from . import _arrays, _library, _reductions
from ._arrays import Array
from ._reductions import Pending
from .errors import InputError, TributaryError


@dataclasses.dataclass(frozen=True)
class Info:
    """A card's description of itself."""

    lanes: int  #: elements in a beat
    ports: int  #: most members of a job
    format: str  #: of contributions: "fp32", "bf16", "fp16", "fp8e4m3", "fp8e5m2", "int32"
    result: str  #: format of sums
    sum: str  #: arithmetic: "tree", "fused", "exact", "max"
    chunk: int  #: most elements in a chunk
    window: int  #: most chunks in flight
    jobs: int  #: most jobs at once
    config_hash: int  #: equal for cards of the same shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of contributions: uint16 for bf16 and uint8 for fp8, with their bits."""
        return _arrays.dtype_of(self.format)

    @property
    def result_dtype(self) -> np.dtype[Any]:
        """The type of sums."""
        return _arrays.dtype_of(self.result)


def _info(name: str, handle: int) -> Info:
    raw = _library.CardInfo(size=ctypes.sizeof(_library.CardInfo))
    _library.call(name, handle, raw)
    return Info(
        lanes=raw.lanes,
        ports=raw.ports,
        format=_arrays.FORMATS[raw.format][0],
        result=_arrays.FORMATS[raw.result][0],
        sum=raw.sum.decode(),
        chunk=raw.chunk,
        window=raw.window,
        jobs=raw.jobs,
        config_hash=raw.config_hash,
    )


def _nanoseconds(what: str, seconds: float | None) -> int:
    if seconds is None:
        return 0
    if not 0 < seconds < 2**33:
        raise InputError(f"{what}: {seconds} s is not a positive time")
    return max(1, int(seconds * 1e9))


def _text(what: str, text: object) -> bytes:
    if not isinstance(text, str) or "\0" in text:
        raise InputError(f"{what}: {text!r} is not a text")
    return text.encode()


class _Closing:
    """An object with a handle, which a with statement closes."""

    _handle: int
    _finalizer: "weakref.finalize[..., Any]"
    _abort_by: str

    def _own(self, handle: int, *keeps: object) -> None:
        """Takes a handle, and ends the object when it is collected, or when the program ends."""
        self._handle = handle
        self._finalizer = weakref.finalize(self, _release, self._abort_by, handle, keeps)

    def _close(self, name: str, *arguments: int) -> None:
        if not self._finalizer.alive:
            return
        try:
            _library.interruptible(lambda: _library.call(name, self._handle, *arguments))
        except InputError:
            raise  # it is in use, and stays open
        except BaseException:
            self._finalizer.detach()
            raise
        self._finalizer.detach()

    def close(self) -> None:
        raise NotImplementedError

    def abort(self) -> None:
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.close()
        else:
            with contextlib.suppress(TributaryError):  # the block's error counts
                self.abort()


def _release(name: str, handle: int, keeps: object) -> None:
    _library.quietly(name, handle)


class Member(_Closing):
    """A worker's view of a job. It makes one reduction after another, in the order of the other members.

    `with` closes a member of `join`; when the block fails, it aborts it.
    """

    def __init__(self, handle: int, keeps: object) -> None:
        """Members come from Job.member and join."""
        self._abort_by = "member_abort"
        self._own(handle, keeps)
        self._keeps = keeps
        rank, size = ctypes.c_int32(), ctypes.c_int32()
        _library.call("member_rank", handle, rank, size)
        self.rank: int = rank.value
        self.size: int = size.value
        self.info: Info = _info("member_info", handle)

    def all_reduce(self, array: Array, op: str = "sum", out: Array | None = None) -> Array:
        """Sums the arrays of all members, and returns the sums.

        All members call it with arrays of one size, in the same order. array is contiguous, has any shape,
        and has the card's dtype (Info.dtype). op is "sum", or "mean" for the sum divided by the number of
        its contributors. The sums replace the elements of array, if the card's result has their dtype;
        otherwise a new array has them. With out, an array of the same shape and of Info.result_dtype, they
        go there, and array stays.

        KeyboardInterrupt cancels the reduction and ends the job, or leaves it (partial).

        Errors: ArrayError, InputError, ClosedError, TimeoutError (MissingError, NotStartedError),
        EndedError (MemberLostError, CallsDifferError, ResultLostError), EvictedError, RefusedError,
        DiedError.
        """
        return self.start(array, op, out)._outcome()

    def start(
        self, array: Array, op: str = "sum", out: Array | None = None, *, detach: bool = False
    ) -> Pending:
        """Starts all_reduce, and returns at once. Reductions of a member queue in the order of their starts.

        detach chooses what Pending.cancel does. Errors: ArrayError, InputError, ClosedError, EndedError,
        EvictedError.
        """
        array = _arrays.check("array", array, self.info.format, written=False)
        result = _arrays.result_for(array, out, self.info.result, in_place=True)
        return _reductions.start(
            "start", self._handle, result, array.ctypes.data, (array, self), (array.size,), op, detach
        )

    def close(self) -> None:
        """Finishes the member's part in the job, and ends its connection. It does nothing when called again.

        Errors: InputError if a reduction is running; EndedError and its kinds if the job has ended without
        a finish; TimeoutError.
        """
        self._close("member_close")

    def abort(self) -> None:
        """Ends the member's connection at once: the other members get MemberLostError, or go on (partial)."""
        self._close("member_abort")


class Job(_Closing):
    """A reduction set up on a card. `with` closes it; when the block fails, it aborts it."""

    def __init__(self, card: "Card", handle: int, size: int) -> None:
        """Jobs come from Card.job."""
        self._abort_by = "job_abort"
        self._own(handle, card)
        self.card: Card = card
        self.size: int = size

    @property
    def ticket(self) -> str | None:
        """The text with which other processes join the job; None if no daemon shares the card."""
        return _library.text_of("job_ticket", self._handle) or None

    def member(self, rank: int) -> Member:
        """Returns the member of a rank in this process. Errors: InputError, ClosedError."""
        handle = ctypes.c_void_p()
        _library.call("job_member", self._handle, rank, handle)
        return Member(handle.value or 0, self)

    def reduce(self, arrays: Sequence[Array], op: str = "sum", out: Array | None = None) -> Array:
        """Sums one array of each member, all in this process, and returns the sums.

        arrays are contiguous, and have one shape and the card's dtype (Info.dtype). The sums go into a new
        array, or into out, which may be one of the arrays. KeyboardInterrupt cancels the reduction and ends
        the job. Errors: those of Member.all_reduce.
        """
        return self.start(arrays, op, out)._outcome()

    def start(
        self, arrays: Sequence[Array], op: str = "sum", out: Array | None = None, *, detach: bool = False
    ) -> Pending:
        """Starts reduce, and returns at once, like Member.start."""
        if isinstance(arrays, np.ndarray):
            raise InputError("arrays: pass a list with one array of each member")
        checked = []
        for rank, array in enumerate(arrays):
            what = f"array of worker {rank}"
            checked.append(_arrays.check(what, array, self.card.info.format, written=False))
            _arrays.check_shape(what, checked[rank], checked[0].shape)
        if len(checked) != self.size:
            raise InputError(
                f"arrays: {len(checked)} arrays for a job of {self.size} members; every member has one"
            )
        result = _arrays.result_for(checked[0], out, self.card.info.result, in_place=False)
        sources = (ctypes.c_void_p * self.size)(*(array.ctypes.data for array in checked))
        counts = (self.size, checked[0].size)
        return _reductions.start(
            "start_reduce", self._handle, result, sources, (checked, self), counts, op, detach
        )

    def close(self) -> None:
        """Finishes the job: the card learns that all members here have their sums.

        It does nothing when called again.

        Errors: InputError if a reduction is running; EndedError and its kinds if the job has ended without
        a finish; TimeoutError.
        """
        self._close("job_close")

    def abort(self) -> None:
        """Ends the job at once, for all its members. Errors: TimeoutError."""
        self._close("job_abort")


class Card(_Closing):
    """An open card. `with` closes it."""

    def __init__(self, name: str, handle: int) -> None:
        """Cards come from open."""
        self._abort_by = "card_close"
        self._own(handle)
        self.name: str = name
        self.info: Info = _info("card_info", handle)

    def job(
        self,
        workers: int = 0,
        *,
        here: Sequence[int] | None = None,
        wait: float | None = None,
        carry_on: float | None = None,
        deadline: float | None = None,
        deadline_cycles: int = 0,
        partial: bool = False,
        chunk: int = 0,
        window: int = 0,
        queue: bool = False,
    ) -> Job:
        """Sets up a job. Times are in seconds.

        workers: members; default: all ports of the card.
        here: ranks of the members in this process, on a shared card; default: all. Other processes join
        with Job.ticket.
        wait: how long members elsewhere may take to join; default: the daemon's, which limits it.
        carry_on: how long the job waits for a card that is gone; default: it fails at once. deadline,
        deadline_cycles: longest time between the first and the last contribution to a chunk; default: no
        limit.
        partial: sum an overdue chunk without the late members; Pending.partials lists such sums. It needs a
        deadline.
        chunk: elements in a chunk. window: chunks in flight. Default: the card's.
        queue: wait until a shared card has room, instead of FullError.

        Errors: InputError, ClosedError, FullError, RefusedError, NotStartedError, TimeoutError, DiedError.
        """
        ranks = (ctypes.c_int32 * len(here))(*here) if here is not None else None
        if ranks is not None and len(ranks) == 0:
            raise InputError(
                "here: there are none; a process takes at least one seat of the job that it makes"
            )
        options = _library.JobOptions(
            size=ctypes.sizeof(_library.JobOptions),
            workers=workers,
            chunk=chunk,
            window=window,
            here_count=0 if ranks is None else len(ranks),
            here=ranks,
            wait_ns=_nanoseconds("wait", wait),
            carry_on_ns=_nanoseconds("carry_on", carry_on),
            deadline_ns=_nanoseconds("deadline", deadline),
            deadline_cycles=deadline_cycles,
            partial=partial,
            queue=queue,
        )
        handle = ctypes.c_void_p()

        def configure() -> int:
            _library.call("configure", self._handle, options, handle)
            return handle.value or 0

        made = _library.interruptible(configure, lambda made: _library.quietly("job_abort", made))
        return Job(self, made, workers or self.info.ports)

    def close(self) -> None:
        """Ends the card's jobs and reductions, and releases the card. It does nothing when called again."""
        self._close("card_close")

    abort = close


class Server(_Closing):
    """A card that this process shares with others. `with` closes it; when the block fails, it aborts it."""

    def __init__(self, card: str, handle: int) -> None:
        """Servers come from serve."""
        self._abort_by = "server_abort"
        self._own(handle)
        self.card: str = card  #: its name in this process
        self.name: str = _library.text_of("server_name", handle)  #: for open: "serve:unix:PATH"

    @property
    def address(self) -> str:
        """Where the server listens: "unix:PATH", or "tcp:HOST:PORT"."""
        place = self.name.removeprefix("serve:")
        return place if place.startswith("unix:") else "tcp:" + place

    def close(self, grace: float = 10) -> None:
        """Ends the server in order, and closes its card. It does nothing when called again.

        The server refuses new jobs, and ends those that wait for members. Running jobs may finish, and
        clients close their cards and members, for at most grace seconds. It does not wait if no client is
        there, so close those of this process before. Jobs that are left end: their reductions raise
        EndedError or DiedError. KeyboardInterrupt ends the server at once.

        Errors: InputError if grace is negative.
        """
        if not 0 <= grace < 2**33:
            raise InputError(f"grace: {grace} s is not a time, which is 0 or more")
        try:
            self._close("server_close", int(grace * 1e9))
        except KeyboardInterrupt:
            _library.quietly("server_abort", self._handle)
            raise

    def abort(self) -> None:
        """Ends the server at once, and its jobs."""
        self._close("server_abort")


def open(
    name: str,
    *,
    workers: int = 0,
    format: str | None = None,
    timeout: float | None = None,
    fixed_window: bool = False,
) -> Card:
    """Opens the card of a name, such as "cpu:", "model:lanes=4" or "serve:unix:/run/tributary.sock".

    workers: members that the caller needs. "cpu:" and "model:" then have that many ports.
    format: "fp32" (default), "bf16", "fp16", "fp8e4m3", "fp8e5m2", "int32". "cpu:" and "model:" have it,
    unless their name has another.
    timeout: how many seconds calls wait without progress; default: 10.
    fixed_window: keep each job's whole window in flight, also in a congested network.

    Errors: InputError, NoCardError, BusyError, IncompatibleError, ForkedError.
    """
    options = _open_options(workers, format, timeout, fixed_window)
    text, handle = _text("name", name), ctypes.c_void_p()

    def action() -> int:
        _library.call("open", text, options, handle)
        return handle.value or 0

    return Card(name, _library.interruptible(action, lambda opened: _library.quietly("card_close", opened)))


def serve(
    name: str,
    address: str,
    *,
    workers: int = 0,
    format: str | None = None,
    timeout: float | None = None,
    fixed_window: bool = False,
) -> Server:
    """Opens the card of a name, as open does, and shares it with other processes at an address.

    Processes of this machine, this one as well, open the card as Server.name, or join its jobs by their
    tickets. A card that goes away is opened again when it is back.

    address: "unix:PATH", a Unix socket that this user alone may open, in a folder that exists. It replaces
    the socket of a process that was killed. Or "tcp:127.0.0.1:PORT", which all users of this machine can
    open; port 0 takes a free one. Addresses that other machines can reach are refused.
    workers, format, timeout, fixed_window: as in open. timeout is that of the card.

    Errors: InputError, also if the process cannot listen at address; those of open.
    """
    options = _open_options(workers, format, timeout, fixed_window)
    text, place, handle = _text("name", name), _text("address", address), ctypes.c_void_p()

    def action() -> int:
        _library.call("serve", text, options, place, handle)
        return handle.value or 0

    return Server(name, _library.interruptible(action, lambda made: _library.quietly("server_abort", made)))


def join(
    ticket: str,
    rank: int | None = None,
    *,
    workers: int = 0,
    format: str | None = None,
    timeout: float | None = None,
    fixed_window: bool = False,
) -> Member:
    """Joins the job of a ticket (Job.ticket), and returns its member.

    The member's reductions wait until all members are there.

    rank: the member's; default: any free one.
    workers, format: what the job must have; default: anything.
    timeout: how many seconds calls wait without progress; default: 10.
    fixed_window: keep each job's whole window in flight, also in a congested network.

    Errors: InputError for a ticket that is none, or if workers or format differ; RefusedError if the job is
    over, or the rank taken; NoCardError; TimeoutError; ForkedError.
    """
    options = _open_options(workers, format, timeout, fixed_window)
    if rank is not None and not 0 <= rank < 64:
        raise InputError(f"rank: {rank}; ranks are 0 to 63, or None for any")
    text, wanted, handle = (
        _text("ticket", ticket),
        _library.ANY_RANK if rank is None else rank,
        ctypes.c_void_p(),
    )

    def action() -> int:
        _library.call("join", text, wanted, options, handle)
        return handle.value or 0

    return Member(
        _library.interruptible(action, lambda joined: _library.quietly("member_abort", joined)), None
    )


def _open_options(
    workers: int, format: str | None, timeout: float | None, fixed_window: bool
) -> _library.OpenOptions:
    return _library.OpenOptions(
        size=ctypes.sizeof(_library.OpenOptions),
        timeout_ns=_nanoseconds("timeout", timeout),
        workers=workers,
        format=_arrays.number_of(format),
        fixed_window=fixed_window,
    )
