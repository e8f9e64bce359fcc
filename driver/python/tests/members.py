"""What the other processes of the tests run."""

import os

import numpy as np
import tributary


def total(ticket: str, paths: list[str], answers) -> None:
    """A member sums the array of its rank."""
    try:
        with tributary.join(ticket, workers=4, timeout=60) as member:
            answers.put((member.rank, in_two_calls(member, paths)))
    except BaseException as error:
        answers.put((-1, repr(error)))


def in_two_calls(member: tributary.Member, paths: list[str]) -> np.ndarray:
    """Sums the array of the member's rank. The second part is queued behind the first."""
    first, second = np.split(np.load(paths[member.rank]), [10000])
    pending = member.start(first), member.start(second, out=np.empty_like(second))
    return np.concatenate([p.wait() for p in pending])


def small(ticket: str | None, answers) -> None:
    """A member sums ones; without a ticket, all members are here."""
    try:
        if ticket is None:
            with tributary.open("cpu:", workers=2) as card, card.job() as job:
                answers.put(job.reduce([np.ones(10, np.int32).view(np.float32)] * 2).tobytes())
        else:
            with tributary.join(ticket, timeout=60) as member:
                answers.put(member.all_reduce(np.ones(10, np.float32)).tolist())
    except BaseException as error:
        answers.put(type(error).__name__)


def die(ticket: str) -> None:
    """A member that ends in the middle of its job."""
    member = tributary.join(ticket, timeout=60)
    member.all_reduce(np.ones(10, np.float32))
    os._exit(1)


def differing(ticket: str, elements: int, op: str, answers) -> None:
    """A member whose call is not that of the others."""
    try:
        tributary.join(ticket, timeout=60).all_reduce(np.ones(elements, np.float32), op=op)
    except tributary.TributaryError as error:
        answers.put((type(error).__name__, error.ranks))
