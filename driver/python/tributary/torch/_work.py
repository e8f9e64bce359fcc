"""Reductions of a group that are under way."""

import queue
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import torch
from torch.distributed import Work

from .. import errors
from .._reductions import Pending

Places = list[tuple[int, int]]  # memory of tensors: from an address, up to another


class Reduction(Work):
    """A call of a group whose sums come from a card: of one tensor or of several.

    Any thread may wait for it. Its future has the list of the tensors, or the exception. A call without a
    future is completed by whoever waits for it, and one with a future by the thread of the group.
    """

    def __init__(
        self,
        calls: "Calls",
        what: str,
        parts: list[Pending],
        tensors: list[torch.Tensor],
        places: Places,
        finish: Callable[[], None],
        seconds: float,
    ) -> None:
        """parts are the card's reductions. finish copies their sums where the caller wants them.

        places: the memory that the call reads and writes.
        """
        super().__init__()
        self._calls, self._what, self._parts, self._tensors, self._finish = calls, what, parts, tensors, finish
        self.places = places
        self._seconds, self._end = seconds, time.monotonic() + seconds
        self.queued = False  #: the thread of the group completes it
        self._settling, self._making = threading.Lock(), threading.Lock()
        self._completed = False
        self._over = threading.Event()
        self.interrupted = False  #: Ctrl-C has ended a wait for it
        self._error: Exception | None = None
        self._outcome: torch.futures.Future[Any] | None = None
        self._future: torch.futures.Future[Any] | None = None
        calls.add(self)

    def wait(self, timeout: timedelta | None = None) -> bool:
        """Waits until the sums are there. timeout: of this wait; the reduction goes on after it.

        Errors: those of Member.all_reduce, with TimeoutError after the timeout of the call or the group.
        """
        self._calls.replace()
        seconds = timeout.total_seconds() if timeout else 0.0  # 0: the reduction has a timeout of its own
        try:
            over = self.join(seconds if seconds > 0 else None)
        except KeyboardInterrupt:
            self.interrupted = True
            raise
        if not over:
            raise errors.RunningError(f"{self._what}: not over after {seconds:g} s; it goes on")
        if self._error is not None:
            raise self._error
        return True

    def join(self, seconds: float | None = None) -> bool:
        """Waits until the call is over, however it ends, for at most so many seconds. Reports whether it is."""
        end = None if seconds is None else time.monotonic() + seconds
        if not self.queued:
            if not self._settling.acquire(timeout=-1 if seconds is None else seconds):
                return False
            try:
                self._settle(end)
            finally:
                self._settling.release()
        return self._over.wait(None if end is None else max(0.0, end - time.monotonic()))

    def complete(self) -> None:
        """Waits until the call is over, and completes its future, if there is one."""
        with self._settling:
            self._settle(None)
        with self._making:
            self._completed, outcome = True, self._outcome
        if outcome is not None:
            self._publish(outcome)

    def _settle(self, end: float | None) -> None:
        """Waits for the card until a time, and does what is left then. The caller holds the lock."""
        if self._over.is_set():
            return
        try:
            for part in self._parts:
                part.wait(max(0.0, min(self._end, end or self._end) - time.monotonic()))
            self._finish()
        except errors.RunningError:
            if end is not None and end < self._end:
                return
            for part in self._parts:
                part.cancel()
            self._error = self._calls.explain(errors.TimeoutError(f"{self._what}: not over after {self._seconds:g} s"))
        except Exception as error:
            self._error = self._calls.explain(error)
        self._calls.forget(self)
        self._parts, self._finish = [], lambda: None
        self._over.set()

    def _publish(self, outcome: "torch.futures.Future[Any]") -> None:
        if self._error is not None:
            outcome.set_exception(self._error)
        else:
            outcome.set_result(self._tensors)

    def get_future(self) -> "torch.futures.Future[Any]":
        self._calls.replace()  # C++ waits for it
        with self._making:
            if self._future is not None:
                return self._future
            outcome: torch.futures.Future[Any] = torch.futures.Future()
            self._outcome = outcome
            # C++ sees the exception of a future only if a callback has raised it.
            self._future = future = outcome.then(lambda done: done.value())
            completed = self._completed
        if completed:
            self._publish(outcome)
        else:
            self._calls.request(self)
        return future

    def synchronize(self) -> None:
        self.wait()

    def is_completed(self) -> bool:
        if self._over.is_set() or self.queued:
            return self._over.is_set()
        return all(part.done() for part in self._parts) and self.join(0)

    def is_success(self) -> bool:
        return self.is_completed() and self._error is None

    def exception(self) -> Exception | None:
        return self._error

    def result(self) -> list[torch.Tensor]:
        return self._tensors


class Calls:
    """The calls of a group that are under way, in their order.

    A thread completes those with a future. Callbacks of futures run in that thread. A callback may make calls
    and wait for them, as PowerSGD's do: then another thread takes over.
    """

    def __init__(self, explain: Callable[[Exception], Exception]) -> None:
        """explain adds to an error what its ranks are."""
        self.explain = explain
        self._lock = threading.Lock()
        self._under_way: list[Reduction] = []
        self._requested: queue.SimpleQueue[Reduction | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def _begin(self) -> None:
        self._thread = threading.Thread(target=self._run, name="tributary group", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while threading.current_thread() is self._thread and (call := self._requested.get()) is not None:
            call.complete()

    def add(self, call: Reduction) -> None:
        self.replace()
        with self._lock:
            self._under_way.append(call)

    def forget(self, call: Reduction) -> None:
        """Notes that a call is over, and no longer uses memory."""
        with self._lock:
            self._under_way.remove(call)

    def request(self, call: Reduction) -> None:
        """Lets the thread complete a call, after all that were made before it."""
        with self._lock:
            before = self._under_way[: self._under_way.index(call)] if call in self._under_way else []
            for each in [*before, call]:
                if not each.queued:
                    each.queued = True
                    self._requested.put(each)
            if self._thread is None:
                self._begin()

    def wait_for(self, places: Places) -> None:
        """Returns when no call uses memory of places."""
        if not self._under_way:
            return
        with self._lock:
            under_way = list(self._under_way)
        for call in under_way:
            if any(first < end and start < last for start, end in places for first, last in call.places):
                self.replace()
                call.join()

    def abandoned(self) -> bool:
        """Reports whether Ctrl-C has ended a wait for a call that is not over."""
        with self._lock:
            return any(call.interrupted for call in self._under_way)

    def replace(self) -> None:
        """Lets another thread complete calls, if a callback calls it, which may wait for one."""
        if threading.current_thread() is self._thread:
            self._begin()

    def stop(self, seconds: float) -> bool:
        """Ends the thread when all calls are over. Returns False if none is over for so many seconds."""
        thread = self._thread
        if threading.current_thread() is thread:
            self._requested.put(None)
            return True
        while under_way := list(self._under_way):
            if not under_way[0].join(seconds):
                return False
        if thread is None:
            return True
        self._requested.put(None)
        thread.join(seconds)
        return not thread.is_alive()
