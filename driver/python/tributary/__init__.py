"""Sums NumPy arrays of several processes through a Tributary card.

    import tributary

    with tributary.open("cpu:", workers=4) as card, card.job() as job:
        total = job.reduce([a, b, c, d])

The README has formats, errors and the rules for processes.
"""

from ._cards import Card, Info, Job, Member, Server, join, open, serve
from ._reductions import Partial, Pending
from .errors import (
    ArrayError,
    BusyError,
    CallsDifferError,
    CanceledError,
    ClosedError,
    DiedError,
    EndedError,
    EvictedError,
    ForkedError,
    FullError,
    IncompatibleError,
    InputError,
    LostError,
    MemberLostError,
    MissingError,
    NoCardError,
    NotStartedError,
    RefusedError,
    ResultLostError,
    RunningError,
    TimeoutError,
    TributaryError,
)

__version__ = "0.1.0"

__all__ = [
    "ArrayError",
    "BusyError",
    "CallsDifferError",
    "CanceledError",
    "Card",
    "ClosedError",
    "DiedError",
    "EndedError",
    "EvictedError",
    "ForkedError",
    "FullError",
    "IncompatibleError",
    "Info",
    "InputError",
    "Job",
    "LostError",
    "Member",
    "MemberLostError",
    "MissingError",
    "NoCardError",
    "NotStartedError",
    "Partial",
    "Pending",
    "RefusedError",
    "ResultLostError",
    "RunningError",
    "Server",
    "TimeoutError",
    "TributaryError",
    "join",
    "open",
    "serve",
]
