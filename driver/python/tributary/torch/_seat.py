"""How the ranks of a group come to members of one job.

All is agreed through the store that torch hands to the group, under keys of the group's own. Every rank says
where it is and which card it was given. Rank 0 makes the job, and answers all with the job's ticket, or with
the reason why there is none. Then every rank reports whether it has joined: all have a seat, or none.

A card that has no daemon is opened by rank 0 and served to the ranks of its machine. It stays open for the
groups that are made later, whose jobs are on the same card.
"""

import contextlib
import dataclasses
import json
import os
import pathlib
import shutil
import socket
import tempfile
import time
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import tributary

from .. import errors

DEFAULT_CARD = "cpu:jobs=8"
SHARED = ("serve:", "roce:")  # names of cards of a daemon that every rank reaches itself

_FOLDER = "tributary-card-"  # prefix of the folders of sockets
_GRACE = 10.0  # seconds for the answer of rank 0, when the group's timeout is over
_ENDING = 3.0  # seconds that a killed process may take to leave its socket
_JOINING = 60.0  # seconds that ranks have to join a job, once they all have its ticket


@dataclasses.dataclass
class Seat:
    """A rank's part in the job of its group."""

    member: tributary.Member
    card: str  #: the name that the user gave
    _closing: contextlib.ExitStack
    shared: pathlib.Path | None = None  #: folder of the socket, if another rank shares the card

    def alone(self) -> bool:
        """Reports whether the rank that shares the card has gone."""
        end = time.monotonic() + _ENDING
        while self.shared is not None:
            if _dead(self.shared):
                return True
            if time.monotonic() > end:
                break
            time.sleep(0.05)
        return False

    def close(self) -> None:
        """Finishes the member's part, and what this rank keeps for the others, when they have left."""
        self._closing.close()

    def abort(self) -> None:
        """Leaves the job at once, which ends it for all ranks."""
        with contextlib.suppress(tributary.TributaryError):
            self.member.abort()
        with contextlib.suppress(_Aborted, tributary.TributaryError), self._closing:
            raise _Aborted  # a card that this rank shares does not wait for the others


class _Aborted(Exception):
    """A seat was aborted."""


class NoRoomError(Exception):
    """The card has no room for the job of a group. Its text says so."""


def take(store: Any, rank: int, size: int, timeout: timedelta, strict: str) -> Seat:
    """Takes the seat of a rank in a new job. All ranks of the group call it, with one store.

    strict: TRIBUTARY_STRICT, the same for all ranks.

    Errors: on all ranks, what one could not do; NoRoomError, InputError, TributaryError, TimeoutError.
    """
    card = os.environ.get("TRIBUTARY_CARD", "").strip() or DEFAULT_CARD
    here = {"card": card, "machine": _machine(), "host": socket.gethostname(), "strict": strict}
    meeting = _Meeting(store, rank, size, timeout)
    meeting.tell(f"rank/{rank}", here)
    with contextlib.ExitStack() as closing:
        try:
            if rank == 0:
                member, shared = _create(meeting, card, closing), None
            else:
                member, shared = _join(meeting, card, closing)
        except BaseException as error:
            meeting.tell(f"joined/{rank}", _failure(error))
            raise
        try:
            meeting.tell(f"joined/{rank}", {})
            for other in range(size):
                _raise(other, meeting.hear(f"joined/{other}", other))
        except BaseException:
            _quietly(member.abort)
            raise
        return Seat(member, card, closing.pop_all(), shared)
    raise AssertionError


@dataclasses.dataclass
class _Meeting:
    """The ranks of a group, and the store in which they leave messages for each other."""

    store: Any
    rank: int
    size: int
    timeout: timedelta

    def __post_init__(self) -> None:
        self._end = time.monotonic() + self.timeout.total_seconds()

    def tell(self, key: str, message: dict[str, str]) -> None:
        self.store.set(key, json.dumps(message))

    def hear(self, key: str, rank: int, grace: float = 0.0) -> dict[str, str]:
        """Returns the message of a rank, for which all have the group's timeout, and grace seconds."""
        left = max(0.1, self._end + grace - time.monotonic())
        try:
            self.store.wait([key], timedelta(seconds=left))
            heard: dict[str, str] = json.loads(self.store.get(key))
        except (RuntimeError, ValueError) as error:
            raise errors.TimeoutError(
                f"rank {rank} did not come to the group in {self.timeout.total_seconds():g} s"
            ) from error
        return heard


def _failure(error: BaseException) -> dict[str, str]:
    """Returns the message that a rank has failed."""
    return {"kind": type(error).__name__, "error": str(error) or repr(error)}


def _raise(rank: int, message: dict[str, str]) -> None:
    """Raises the failure of another rank, if its message is one."""
    if "error" in message:
        kind = getattr(errors, message["kind"], None)
        if not (isinstance(kind, type) and issubclass(kind, errors.TributaryError)):
            kind = errors.TributaryError
        raise kind(f"rank {rank}: {message['error']}")


def _create(meeting: _Meeting, card: str, closing: contextlib.ExitStack) -> tributary.Member:
    """Makes the job, and takes the seat of rank 0. Its failure is every rank's."""
    answer: dict[str, str] = {}
    size, seconds = meeting.size, meeting.timeout.total_seconds()
    try:
        _compare(card, [meeting.hear(f"rank/{rank}", rank) for rank in range(size)])
        shared = closing.enter_context(_shared(card, size))
        answer["card"] = shared
        opened = tributary.open(shared, workers=size, timeout=seconds)
        closing.callback(_quietly, opened.close)
        if opened.info.ports < size:
            raise errors.InputError(
                f"TRIBUTARY_CARD={card}: the card has {opened.info.ports} ports, and the group {size} ranks; "
                "take a card with more ports, or groups of fewer ranks"
            )
        job = opened.job(workers=size, here=[0], wait=min(seconds, _JOINING))
        closing.callback(_quietly, job.close)
        answer["ticket"] = job.ticket or ""
        member = job.member(0)
        closing.callback(_quietly, member.close)
        return member
    except tributary.FullError as error:
        answer["full"] = str(error)
        raise NoRoomError(str(error)) from error
    except BaseException as error:
        answer.update(_failure(error))
        raise
    finally:
        meeting.tell("answer", answer)


def _join(
    meeting: _Meeting, card: str, closing: contextlib.ExitStack
) -> tuple[tributary.Member, pathlib.Path | None]:
    """Takes the seat of another rank. Returns the folder of the socket as well, if a rank shares the card."""
    answer = meeting.hear("answer", 0, grace=_GRACE)  # rank 0 may wait for a rank that does not come
    if "full" in answer:
        raise NoRoomError(answer["full"])
    _raise(0, answer)
    ticket, folder = answer["ticket"], None
    if card.startswith(SHARED):  # this machine may reach the daemon by another name
        ticket = card + ticket[ticket.index("?job=") :]
    else:
        folder = _folder_of(answer["card"])
        closing.callback(_tidy, folder)
        closing.enter_context(_known(card, answer["card"]))
    member = tributary.join(ticket, meeting.rank, workers=meeting.size, timeout=meeting.timeout.total_seconds())
    closing.callback(_quietly, member.close)
    return member, folder


def _compare(card: str, ranks: list[dict[str, str]]) -> None:
    """Refuses ranks that cannot share the card of rank 0, or would not choose as it does what Gloo sums."""
    local, strict = not card.startswith(SHARED), ranks[0]["strict"]
    if strict not in ("", "0", "1", "all"):
        raise errors.InputError(f"TRIBUTARY_STRICT={strict}: it is 0, 1 for reductions, or all for every call")
    for rank, other in enumerate(ranks):
        if other["strict"] != strict:
            raise errors.InputError(
                f"TRIBUTARY_STRICT is {strict!r} for rank 0, and {other['strict']!r} for rank {rank} on "
                f"{other['host']}; give all ranks one value"
            )
        if other["card"].startswith(SHARED) != (not local) or (local and other["card"] != card):
            raise errors.InputError(
                f"TRIBUTARY_CARD is {card} for rank 0, and {other['card']} for rank {rank} on {other['host']}; "
                "give all ranks one card"
            )
        if local and other["machine"] != ranks[0]["machine"]:
            raise errors.InputError(
                f"TRIBUTARY_CARD={card}: rank 0 shares this card on its own machine, {ranks[0]['host']}, and rank "
                f"{rank} is on {other['host']}; run `tributary serve -card {card} -listen tcp:...` and set "
                "TRIBUTARY_CARD=serve:HOST:PORT for all ranks"
            )


# Cards that this process reaches by the name of a daemon in one of the ranks, while a group uses them.
_reached: dict[str, list[str]] = {}


@contextlib.contextmanager
def _known(card: str, shared: str) -> Iterator[None]:
    """Remembers under which name a card is shared, for the groups that are made meanwhile."""
    names = _reached.setdefault(card, [])
    names.append(shared)
    try:
        yield
    finally:
        names.remove(shared)


@contextlib.contextmanager
def _shared(card: str, size: int) -> Iterator[str]:
    """Gives the name by which all ranks reach the card. It opens the card, if no group has done so."""
    if card.startswith(SHARED):
        yield card
        return
    if _reached.get(card):
        shared = _reached[card][0]
        with _known(card, shared):
            yield shared
        return
    for left in pathlib.Path(tempfile.gettempdir()).glob(_FOLDER + "*"):
        with contextlib.suppress(OSError):
            if left.stat().st_uid == os.getuid() and left.stat().st_mtime < time.time() - 60:
                _tidy(left)
    folder = pathlib.Path(tempfile.mkdtemp(prefix=_FOLDER))  # of this user alone
    try:
        with tributary.serve(card, f"unix:{folder}/card", workers=size) as server:
            with _known(card, server.name):
                yield server.name
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _folder_of(shared: str) -> pathlib.Path:
    """Returns the folder of the socket of a card that a rank shares."""
    return pathlib.Path(shared.removeprefix("serve:unix:")).parent


def _tidy(folder: pathlib.Path) -> None:
    """Removes the folder of a socket whose process was killed."""
    if _dead(folder):
        shutil.rmtree(folder, ignore_errors=True)


def _dead(folder: pathlib.Path) -> bool:
    """Reports whether nobody listens at the socket of a folder."""
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(str(folder / "card"))
        except (ConnectionRefusedError, FileNotFoundError):
            return True
        except OSError:
            pass
    return False


def _quietly(close: Any) -> None:
    with contextlib.suppress(tributary.TributaryError):
        close()


def _machine() -> str:
    """Names this machine, until it is started again."""
    return pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip()
