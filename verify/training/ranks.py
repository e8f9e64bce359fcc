"""Processes that run cases as the ranks of a group.

An import of torch takes seconds. So one process imports it, and ranks are forked from that one. They live as
long as the tests, and run one case after another. Cases that kill ranks take new ones (Pool.run with fresh).
"""

import contextlib
import dataclasses
import faulthandler
import importlib
import io
import multiprocessing
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time
import traceback
import warnings
from datetime import timedelta
from multiprocessing.connection import Connection
from typing import Any

CASES = "cases"
PATIENCE = float(os.environ.get("PATIENCE", 240))  # seconds for a case on a busy machine


@dataclasses.dataclass
class Outcome:
    """What became of a case in one rank."""

    value: Any = None
    error: str = ""  #: the exception's class
    kinds: tuple[str, ...] = ()  #: and the classes above it
    text: str = ""  #: of the exception, with its notes
    ranks: tuple[int, ...] = ()  #: that the exception names
    stderr: str = ""
    seconds: float = 0.0
    trace: str = ""
    died: bool = False


class CaseError(Exception):
    """A case has failed in a rank, and the test did not expect it."""


class Rank:
    """A process."""

    def __init__(self, temporary: pathlib.Path, start: str = "forkserver") -> None:
        context = multiprocessing.get_context(start)
        if start == "forkserver":
            context.set_forkserver_preload(["torch.distributed"])
        self.connection, there = context.Pipe()
        self.process = context.Process(target=_live, args=(there, str(temporary)))
        self.process.start()
        there.close()

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.process.pid, signal.SIGKILL)
        self.process.join()
        self.connection.close()


class Pool:
    """Ranks, started when a case needs them."""

    def __init__(self) -> None:
        self._ranks: list[Rank] = []
        self.temporary = pathlib.Path(tempfile.mkdtemp(prefix="training-"))  #: for temporary files of all ranks

    def __enter__(self) -> "Pool":
        return self

    def __exit__(self, *_: object) -> None:
        ranks, self._ranks = self._ranks, []
        for rank in ranks:
            with contextlib.suppress(OSError):
                rank.connection.send(None)
        for rank in ranks:
            rank.process.join(30)
            rank.kill()
        shutil.rmtree(self.temporary, ignore_errors=True)

    def run(
        self,
        case: str,
        size: int = 4,
        *,
        card: str | list[str] | None = None,
        env: dict[str, str] | None = None,
        args: Any = None,
        init: bool | str = True,
        seconds: float = 120,
        fails: bool = False,
        fresh: str = "",
        absent: tuple[int, ...] = (),
        whole: bool = False,
    ) -> list[Any]:
        """Runs cases.CASE(rank, size, **args) in ranks, and returns what it returns in each.

        card: TRIBUTARY_CARD, for each rank where it is a list. env: more of the environment.
        args: of all ranks, or a list of those of each.
        init: makes the group before the case, and destroys it after it; a text is the backend's name.
        seconds: the group's timeout.
        fails: return Outcomes; otherwise a failure of a rank is the test's. whole: return Outcomes of what did
        not fail. fresh: take processes that no other case uses: "forkserver", or "spawn", whose interpreter ends
        as a program's does. absent: ranks that do not come.
        """
        ranks = [Rank(self.temporary, fresh) for _ in range(size)] if fresh else self._take(size)
        folder = pathlib.Path(tempfile.mkdtemp(prefix="training-"))
        try:
            for number, rank in enumerate(ranks):
                if number in absent:
                    continue
                own = dict(env or {})
                if card is not None:
                    own["TRIBUTARY_CARD"] = card if isinstance(card, str) else card[number]
                own_args = args[number] if isinstance(args, list) else args or {}
                rank.connection.send((case, number, size, own, own_args, init, seconds, str(folder / "store")))
            end = time.monotonic() + PATIENCE
            outcomes = [
                Outcome() if number in absent else self._outcome(rank, end) for number, rank in enumerate(ranks)
            ]
            if any(outcome is None for outcome in outcomes):
                for rank in ranks:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(rank.process.pid, signal.SIGUSR1)  # prints where its threads are
                time.sleep(2)
                waiting = [number for number, outcome in enumerate(outcomes) if outcome is None]
                raise CaseError(f"{case}: ranks {waiting} are not over after {PATIENCE:g} s; others: {outcomes}")
        except BaseException:
            for rank in ranks:
                rank.kill()
            if not fresh:
                self._ranks = []
            raise
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        if fresh:
            for rank in ranks:
                with contextlib.suppress(OSError):
                    rank.connection.send(None)
            for rank in ranks:
                rank.process.join(60)
                hung = rank.process.is_alive()
                rank.kill()
                assert not hung, "a rank's process does not end"
        if fails:
            return outcomes
        failed = [
            f"{case}: rank {number}: {outcome.trace or 'the process died'}\n{outcome.stderr}"
            for number, outcome in enumerate(outcomes)
            if outcome.error or outcome.died
        ]
        if failed:
            raise CaseError("\n".join(failed))
        return outcomes if whole else [outcome.value for outcome in outcomes]

    def _take(self, size: int) -> list[Rank]:
        while len(self._ranks) < size:
            self._ranks.append(Rank(self.temporary))
        return self._ranks[:size]

    def _outcome(self, rank: Rank, end: float) -> Outcome | None:
        """Waits for the end of a case; None if it does not come."""
        if not rank.connection.poll(max(0.0, end - time.monotonic())):
            return None
        try:
            return rank.connection.recv()
        except EOFError:
            rank.process.join()
            return Outcome(died=True)


def _live(connection: Connection, temporary: str) -> None:
    """Runs cases until the tests end."""
    os.environ["TMPDIR"] = temporary
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    before = dict(os.environ)
    while True:
        try:
            message = connection.recv()
        except (EOFError, OSError):
            return
        if message is None:
            return
        case, rank, size, env, args, init, seconds, store = message
        os.environ.clear()
        os.environ.update(before | env)
        connection.send(_run(case, rank, size, args, init, seconds, store))


def _run(case: str, rank: int, size: int, args: dict, init: bool | str, seconds: float, store: str) -> Outcome:
    import torch.distributed as dist

    module, _, name = case.rpartition(".")
    function = getattr(importlib.import_module(module or CASES), name)
    outcome, printed, start = Outcome(), io.StringIO(), time.monotonic()
    with contextlib.redirect_stderr(printed), warnings.catch_warnings():
        warnings.simplefilter("always")
        try:
            # An init that has failed on this rank alone has counted a group, whose number is in the store's keys.
            dist.distributed_c10d._world.group_count = 0
            file = dist.FileStore(store, size)
            if init:
                dist.init_process_group(
                    init if isinstance(init, str) else "tributary",
                    store=file,
                    rank=rank,
                    world_size=size,
                    timeout=timedelta(seconds=seconds),
                )
                outcome.value = function(rank, size, **args)
                dist.destroy_process_group()
            else:
                outcome.value = function(rank, size, file, **args)
        except BaseException as error:
            outcome.error = type(error).__name__
            outcome.kinds = tuple(kind.__name__ for kind in type(error).__mro__)
            outcome.text = "\n".join([str(error), *getattr(error, "__notes__", [])])
            outcome.ranks = tuple(getattr(error, "ranks", ()))
            outcome.trace = traceback.format_exc()
        outcome.seconds = time.monotonic() - start
        if dist.is_initialized() and outcome.value != "leave":
            with contextlib.suppress(Exception):
                dist.destroy_process_group()
    outcome.stderr = printed.getvalue()
    return outcome


def running(pid: int) -> bool:
    """Reports whether a process runs."""
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True).stdout.strip()
    return bool(state) and not state.startswith("Z")
