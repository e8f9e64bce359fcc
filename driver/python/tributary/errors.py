"""The exceptions of this package, one class for each kind of error in tributary.h."""

import builtins


class TributaryError(Exception):
    """An error of the library. Its text names what failed, where, and the remedy.

    `ranks` are the ranks that the error names, ascending; it is empty for most kinds.
    """

    ranks: tuple[int, ...] = ()


class InputError(TributaryError, ValueError):
    """An argument is wrong. The card has not been touched."""


class ArrayError(InputError):
    """An array cannot be reduced as it is. Nothing of it was sent."""


class ForkedError(TributaryError, RuntimeError):
    """This process was forked after the library was loaded; Go does not run in it."""


class ClosedError(TributaryError):
    """The object, or its card, is closed."""


class NoCardError(TributaryError):
    """No card has this name, or no card replies there."""


class BusyError(TributaryError):
    """Another host has the card."""


class IncompatibleError(TributaryError):
    """The card has another protocol version, or is not the card that was expected."""


class FullError(TributaryError):
    """The card has no room for another job."""


class RefusedError(TributaryError):
    """The card, or its daemon, refused a request."""


class TimeoutError(TributaryError, builtins.TimeoutError):
    """Nothing has moved for the timeout."""


class MissingError(TimeoutError):
    """The contributions of `ranks` are missing."""


class NotStartedError(TimeoutError):
    """The members `ranks` did not join the job in time."""


class RunningError(TimeoutError):
    """The time of `Pending.wait` is over. The reduction goes on."""


class CanceledError(TributaryError):
    """`Pending.cancel` ended the reduction."""


class EndedError(TributaryError):
    """The job is over."""


class MemberLostError(EndedError):
    """The job is over: the processes of the members `ranks` have gone."""


class CallsDifferError(EndedError):
    """The job is over: the members `ranks` called for different reductions."""


class ResultLostError(EndedError):
    """The job is over: nobody keeps a result that some members lack."""


class EvictedError(TributaryError):
    """The member `ranks` has left a job that goes on without it."""


class DiedError(TributaryError):
    """The card is gone."""


class LostError(DiedError):
    """The card is gone, and did not return in time."""


# By tributary_error.
_KINDS: dict[int, type[TributaryError]] = {
    1: TributaryError,
    2: InputError,
    3: ForkedError,
    4: ClosedError,
    5: NoCardError,
    6: BusyError,
    7: IncompatibleError,
    8: FullError,
    9: RefusedError,
    10: TimeoutError,
    11: MissingError,
    12: NotStartedError,
    13: RunningError,
    14: CanceledError,
    15: EndedError,
    16: MemberLostError,
    17: CallsDifferError,
    18: ResultLostError,
    19: EvictedError,
    20: DiedError,
    21: LostError,
}


def make(kind: int, text: str, ranks: int) -> TributaryError:
    """Returns the exception for a tributary_error, its text and its mask of ranks."""
    error = _KINDS.get(kind, TributaryError)(text)
    error.ranks = tuple(rank for rank in range(64) if ranks >> rank & 1)
    return error
