"""The functions of libtributary.so, as tributary.h declares them.

The library is loaded by the first call, not by the import: a program that has imported this package may
still fork, until it opens a card or joins a job.
"""

import ctypes
import functools
import pathlib
import threading
from collections.abc import Callable
from ctypes import (
    POINTER,
    c_char,
    c_char_p,
    c_int,
    c_int32,
    c_int64,
    c_size_t,
    c_uint8,
    c_uint32,
    c_uint64,
    c_void_p,
)
from typing import Any, TypeVar

from . import errors

ABI_VERSION = 1
ANY_RANK = -1
DETACH = 1
OPERATIONS = {"sum": 0, "mean": 1}

Result = TypeVar("Result")


class OpenOptions(ctypes.Structure):
    """tributary_open_options."""

    _fields_ = [
        ("size", c_size_t),
        ("timeout_ns", c_int64),
        ("workers", c_int32),
        ("format", c_int32),
        ("fixed_window", c_uint8),
    ]


class CardInfo(ctypes.Structure):
    """tributary_info."""

    _fields_ = [
        ("size", c_size_t),
        ("config_hash", c_uint64),
        ("lanes", c_int32),
        ("ports", c_int32),
        ("format", c_int32),
        ("result", c_int32),
        ("format_size", c_int32),
        ("result_size", c_int32),
        ("chunk", c_int32),
        ("window", c_int32),
        ("jobs", c_int32),
        ("sum", c_char * 16),
    ]


class JobOptions(ctypes.Structure):
    """tributary_job_options."""

    _fields_ = [
        ("size", c_size_t),
        ("workers", c_int32),
        ("chunk", c_int32),
        ("window", c_int32),
        ("here_count", c_int32),
        ("here", POINTER(c_int32)),
        ("wait_ns", c_int64),
        ("carry_on_ns", c_int64),
        ("deadline_ns", c_int64),
        ("deadline_cycles", c_uint32),
        ("partial", c_uint8),
        ("queue", c_uint8),
    ]


class PartialSums(ctypes.Structure):
    """tributary_partial."""

    _fields_ = [("start", c_uint64), ("stop", c_uint64), ("ranks", c_uint64)]


_handle = c_void_p
_FUNCTIONS: dict[str, tuple[Any, ...]] = {
    "open": (c_char_p, POINTER(OpenOptions), POINTER(_handle)),
    "card_info": (_handle, POINTER(CardInfo)),
    "card_close": (_handle,),
    "serve": (c_char_p, POINTER(OpenOptions), c_char_p, POINTER(_handle)),
    "server_name": (_handle, c_char_p, c_size_t, POINTER(c_size_t)),
    "server_close": (_handle, c_int64),
    "server_abort": (_handle,),
    "configure": (_handle, POINTER(JobOptions), POINTER(_handle)),
    "job_ticket": (_handle, c_char_p, c_size_t, POINTER(c_size_t)),
    "job_member": (_handle, c_int32, POINTER(_handle)),
    "job_close": (_handle,),
    "job_abort": (_handle,),
    "join": (c_char_p, c_int32, POINTER(OpenOptions), POINTER(_handle)),
    "member_rank": (_handle, POINTER(c_int32), POINTER(c_int32)),
    "member_info": (_handle, POINTER(CardInfo)),
    "member_close": (_handle,),
    "member_abort": (_handle,),
    "start": (_handle, c_void_p, c_void_p, c_size_t, c_int, c_uint32, POINTER(_handle)),
    "start_reduce": (
        _handle,
        c_void_p,
        POINTER(c_void_p),
        c_size_t,
        c_size_t,
        c_int,
        c_uint32,
        POINTER(_handle),
    ),
    "wait": (_handle, c_int64),
    "cancel": (_handle,),
    "partials": (_handle, POINTER(PartialSums), c_size_t, POINTER(c_size_t)),
    "pending_close": (_handle,),
}


@functools.cache
def load() -> ctypes.CDLL:
    """Loads the library of this package."""
    library = ctypes.CDLL(str(pathlib.Path(__file__).with_name("libtributary.so")))
    version = library.tributary_abi_version
    version.restype = c_uint32
    if version() != ABI_VERSION:
        raise ImportError(
            f"{library._name} has interface {version()}, this package needs {ABI_VERSION}; install it again"
        )
    library.tributary_error_text.restype = c_char_p
    library.tributary_error_ranks.restype = c_uint64
    for name, arguments in _FUNCTIONS.items():
        function = getattr(library, "tributary_" + name)
        function.argtypes, function.restype = arguments, c_int
    return library


def call(name: str, *arguments: Any) -> None:
    """Calls tributary_NAME, and raises its error."""
    library = load()
    kind = getattr(library, "tributary_" + name)(*arguments)
    if kind != 0:
        text = library.tributary_error_text().decode()
        raise errors.make(kind, text, library.tributary_error_ranks())


def text_of(name: str, handle: int) -> str:
    """Calls tributary_NAME, which writes a text into a buffer."""
    length = ctypes.c_size_t(256)
    text = ctypes.create_string_buffer(length.value)
    try:
        call(name, handle, text, len(text), length)
    except errors.InputError:
        text = ctypes.create_string_buffer(length.value)
        call(name, handle, text, len(text), length)
    return text.value.decode()


def quietly(name: str, *arguments: Any) -> None:
    """Calls tributary_NAME, for an object that nobody needs any more."""
    try:
        call(name, *arguments)
    except errors.TributaryError:
        pass


def interruptible(
    action: Callable[[], Result], undo: Callable[[Result], None] = lambda result: None
) -> Result:
    """Runs an action that may block for seconds, so that Ctrl-C works meanwhile.

    Only the main thread gets KeyboardInterrupt, so there the action runs in a thread of its own. An
    interrupted action goes on there, and undo takes its result back.
    """
    if threading.current_thread() is not threading.main_thread():
        return action()
    load()  # in the main thread, whose signal mask the library's threads inherit
    results: list[Result] = []
    failures: list[BaseException] = []
    lock, interrupted, done = threading.Lock(), False, threading.Event()

    def run() -> None:
        try:
            result = action()
            with lock:
                if not interrupted:
                    results.append(result)
            if not results:
                undo(result)
        except BaseException as failure:
            failures.append(failure)
        finally:
            done.set()

    try:
        threading.Thread(target=run, name="tributary", daemon=True).start()
        done.wait()
    except BaseException:
        with lock:
            interrupted = True
        for result in results:  # it came in the same moment
            undo(result)
        raise
    if failures:
        raise failures[0]
    return results[0]
