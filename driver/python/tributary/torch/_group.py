"""The process group "tributary": sums come from a card, all else from Gloo."""

import atexit
import contextlib
import ctypes
import itertools
import os
import sys
import warnings
import weakref
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from typing import Any

import torch
from torch.distributed import AllreduceOptions, ProcessGroup, ProcessGroupGloo, ReduceOp, ReduceScatterOptions, Work
from torch.distributed import distributed_c10d as c10d

import tributary

from .. import errors
from . import _seat, _tensors
from ._traffic import Traffic
from ._work import Calls, Places, Reduction

_OPERATIONS = {ReduceOp.SUM: "sum", ReduceOp.AVG: "mean", ReduceOp.MAX: "max"}

# What the inner group does. The first is a reduction: an error when it must be the card's (TRIBUTARY_STRICT).
_OTHERS = """
reduce
broadcast allgather _allgather_base all_gather_single allgather_coalesced allgather_into_tensor_coalesced
all_gather_single_coalesced gather gather_single gather_into_tensor scatter alltoall alltoall_base
all_to_all_single send recv recv_anysource barrier
""".split()


_WAITING = 10.0  # seconds that a group waits for a reduction to end, when it is destroyed
_LEAVING = 5.0  # seconds that callbacks of failed reductions may take when a group is aborted

_LAX = ("", "0")  # values of TRIBUTARY_STRICT that let Gloo do what the card cannot


class Group(ProcessGroup):
    """A process group whose reductions go through a card.

    An inner group does what the card cannot: one of torch's own, with Gloo for tensors in memory.
    """

    def __init__(self, options: Any) -> None:
        """options: torch's _DistributedBackendOptions. All ranks of the group are in this call at once.

        Errors: those of tributary.open, on all ranks.
        """
        rank, size = options.group_rank, options.group_size
        super().__init__(options.store, rank, size)
        self._options = options
        self._timeout: timedelta = options.timeout
        self._process = os.getpid()
        self._closed = False
        self.traffic = Traffic()
        # First the card: its errors name the ranks that are not there.
        self._seat: _seat.Seat | None = None
        store = c10d.PrefixStore("tributary/", options.store)
        strict = os.environ.get("TRIBUTARY_STRICT", "")
        try:
            self._seat = _seat.take(store, rank, size, options.timeout, strict)
        except _seat.NoRoomError as error:
            if strict not in _LAX:
                raise errors.FullError(f"{error} (TRIBUTARY_STRICT is set)") from error
            if rank == 0:
                warnings.warn(
                    f"tributary: Gloo sums for this group of {size} ranks: {error} (TRIBUTARY_CARD=cpu:jobs=N is a "
                    "card in software for N groups)",
                    stacklevel=4,
                )
        self._card = self._seat.card if self._seat is not None else "no card"
        self._strict = "" if strict in _LAX else strict
        try:
            self._make_inner()
        except BaseException:
            if self._seat is not None:
                self._seat.abort()
            raise
        self._calls = Calls(self._explain)
        _groups.add(self)

    def _make_inner(self) -> None:
        """Makes the group for what the card cannot do."""
        options, rank, size = self._options, self.rank(), self.size()
        self._inner = ProcessGroup(options.store, rank, size)
        gloo = ProcessGroupGloo(c10d.PrefixStore("gloo/", options.store), rank, size, timeout=options.timeout)
        self._register(torch.device("cpu"), ProcessGroup.BackendType.GLOO, gloo)
        for group in (self, self._inner):
            group._set_default_backend(ProcessGroup.BackendType.GLOO)

    # ---------------------------------------------------------------------------------- reductions

    def allreduce(self, tensors: Any, options: Any = None, timeout: timedelta | None = None) -> Work:
        """Sums tensors of all ranks in place."""
        tensors, options = _list(tensors), _complete(AllreduceOptions, options, timeout)
        if self._takes("allreduce", tensors, options.reduceOp):
            return self._reduce("all_reduce", tensors, options, tensors)
        return self._by_gloo("allreduce", tensors, options)

    def allreduce_coalesced(self, tensors: Any, options: Any = None) -> Work:
        """Sums several tensors in one call."""
        options = options or c10d.AllreduceCoalescedOptions()
        if self._takes("allreduce_coalesced", tensors, options.reduceOp):
            return self._reduce("all_reduce", tensors, options, tensors)
        return self._by_gloo("allreduce_coalesced", tensors, options)

    def reduce_scatter(self, outputs: Any, inputs: Any, options: Any = None, timeout: timedelta | None = None) -> Work:
        """Sums a tensor for each rank; a rank gets its own."""
        if isinstance(outputs, torch.Tensor):
            outputs, inputs = [outputs], [inputs]
        options = _complete(ReduceScatterOptions, options, timeout)
        if not self._takes("reduce_scatter", [*outputs, *sum(inputs, [])], options.reduceOp):
            return self._by_gloo("reduce_scatter", outputs, inputs, options)
        for output, parts in zip(outputs, inputs, strict=True):
            if [part.numel() for part in parts] != [output.numel()] * self.size():
                raise errors.InputError(
                    f"reduce_scatter: the inputs have {[part.numel() for part in parts]} elements; {self.size()} "
                    f"ranks have outputs of {output.numel()} elements"
                )
        self._calls.wait_for(_places([*outputs, *sum(inputs, [])]))
        wholes = [torch.cat([part.detach().reshape(-1) for part in parts]) for parts in inputs]
        return self._reduce_parts(outputs, wholes, options)

    def _reduce_scatter_base(self, output: Any, source: Any, options: Any = None) -> Work:
        return self._reduce_wholes("_reduce_scatter_base", output, source, options)

    def reduce_scatter_single(self, output: Any, source: Any, options: Any = None) -> Work:
        return self._reduce_wholes("reduce_scatter_single", output, source, options)

    def reduce_scatter_tensor_coalesced(self, outputs: Any, sources: Any, options: Any = None) -> Work:
        return self._reduce_wholes("reduce_scatter_tensor_coalesced", outputs, sources, options)

    def reduce_scatter_single_coalesced(self, outputs: Any, sources: Any, options: Any = None) -> Work:
        return self._reduce_wholes("reduce_scatter_single_coalesced", outputs, sources, options)

    def _reduce_wholes(self, name: str, output: Any, source: Any, options: Any) -> Work:
        """Sums a tensor that has a part for each rank, or several ones."""
        outputs, sources = _list(output), _list(source)
        options = options or ReduceScatterOptions()
        if not self._takes(name, [*outputs, *sources], options.reduceOp):
            return self._by_gloo(name, output, source, options)
        for out, whole in zip(outputs, sources, strict=True):
            if whole.numel() != out.numel() * self.size():
                raise errors.InputError(
                    f"reduce_scatter: the input has {whole.numel()} elements; {self.size()} ranks have outputs of "
                    f"{out.numel()} elements"
                )
        self._calls.wait_for(_places([*outputs, *sources]))
        return self._reduce_parts(outputs, [whole.detach().reshape(-1).clone() for whole in sources], options)

    def _reduce_parts(self, outputs: list[torch.Tensor], wholes: list[torch.Tensor], options: Any) -> Work:
        """Sums flat tensors that are the group's own, and gives this rank its parts of the sums."""

        def finish() -> None:
            with torch.no_grad():
                for output, whole in zip(outputs, wholes, strict=True):
                    output.copy_(whole.view(self.size(), *output.shape)[self.rank()])

        return self._reduce("reduce_scatter", wholes, options, outputs, finish)

    # ---------------------------------------------------------------------------- the card, or Gloo

    def _takes(self, name: str, tensors: Sequence[torch.Tensor], op: Any) -> bool:
        """Reports whether the card does a reduction. All ranks find the same."""
        self._check()
        if any(self._elsewhere(tensor) for tensor in tensors):
            return False
        why = self._refusal(tensors, op)
        if why and self._strict:
            raise errors.InputError(f"{name}: {why}, and TRIBUTARY_STRICT is set; without it, Gloo does such calls")
        return not why

    def _check(self) -> None:
        """Refuses calls of a group that is over, or of another process."""
        if os.getpid() != self._process:
            raise errors.ForkedError(
                "this process was forked after its parent had made the group; start processes by spawn, or fork "
                "before init_process_group"
            )
        if self._closed:
            raise errors.ClosedError("the group is over: it was destroyed or aborted")

    def _refusal(self, tensors: Sequence[torch.Tensor], op: Any) -> str:
        """Says why the card cannot sum tensors."""
        if self._seat is None:
            return "the card had no room for the group"
        info = self._seat.member.info
        for tensor in tensors:
            if tensor.layout != torch.strided:
                return f"a tensor is {str(tensor.layout).removeprefix('torch.')}"
            if _tensors.format_of(tensor) != info.format:
                return f"a tensor has {str(tensor.dtype).removeprefix('torch.')}, and the card {info.format}"
        able = ["max"] if info.sum == "max" else ["sum"] if info.format == "int32" else ["sum", "mean"]
        if _operation(op) not in able:
            return f"the operation is not {' or '.join(able)} of the card"
        return ""

    def _reduce(
        self,
        what: str,
        tensors: list[torch.Tensor],
        options: Any,
        results: list[torch.Tensor],
        finish: Callable[[], None] = lambda: None,
    ) -> Work:
        """Sums tensors through the card. finish brings the sums into results."""
        assert self._seat is not None
        member = self._seat.member
        places = _places(results)
        self._calls.wait_for(places)
        # Sums in place would be summed again in another tensor of the call with the same memory.
        apart = _overlap(places)
        placed = [_tensors.place(tensor, member.info.result, apart) for tensor in tensors if tensor.numel()]
        op = "mean" if _operation(options.reduceOp) == "mean" else "sum"  # a card of maxima has no other sum
        timeout = options.timeout if options.timeout > timedelta(0) else self._timeout

        def bring() -> None:
            for _, _, back in placed:
                back()
            finish()

        parts = []
        try:
            for source, out, _ in placed:
                parts.append(member.start(source, op, out))
                self.traffic.by_card(source.nbytes)
        except errors.TributaryError as error:
            raise self._explain(error) from None
        text = f"{what} of {sum(tensor.numel() for tensor in tensors):,} elements"
        return Reduction(self._calls, text, parts, results, places, bring, timeout.total_seconds())

    def _by_gloo(self, name: str, *arguments: Any, **options: Any) -> Work:
        """Makes a call of the inner group, and notes the bytes of its first argument."""
        self._check()
        self._calls.wait_for(_places(_tensors.all_of(arguments)))
        self.traffic.by_gloo(name.strip("_"), _tensors.size_of(arguments[:1]))
        work: Work = getattr(self._inner, name)(*arguments, **options)
        return work

    def _elsewhere(self, tensor: torch.Tensor) -> bool:
        """Reports whether a tensor is on a device that has another backend, as in "cpu:tributary,cuda:nccl".

        torch makes no backend of its own beside a group in Python. So it is made here, for the first tensor.
        """
        kind = tensor.device.type
        if kind == "cpu":
            return False
        if kind in {known.type for known in self._device_types}:
            return True
        name = c10d.BackendConfig(c10d.Backend(c10d.get_backend_config(self))).get_device_backend_map().get(kind)
        if name in (None, "tributary"):
            raise errors.InputError(
                f"a tensor is on {tensor.device}, and cards sum in the host's memory; pass tensor.cpu(), or use "
                'init_process_group("cpu:tributary,cuda:nccl")'
            )
        plugin = c10d.Backend._plugins[name.upper()]
        store = c10d.PrefixStore(f"{kind}/", self._options.store)
        if plugin.extended_api:
            options: Any = type(self._options)()
            for field in ("group_rank", "group_size", "timeout", "group_id", "global_ranks_in_group", "process_group"):
                setattr(options, field, getattr(self._options, field))
            options.store = store
            made = plugin.creator_fn(options, None)
        else:
            made = plugin.creator_fn(store, self.rank(), self.size(), self._timeout)
        self._register(torch.device(kind), c10d.Backend.backend_type_map[name], made)
        return True

    def _register(self, device: torch.device, kind: ProcessGroup.BackendType, backend: Any) -> None:
        """Gives a device's tensors a backend of torch: in the inner group, and here, where torch looks for it."""
        for group in (self, self._inner):
            group._register_backend(device, kind, backend)

    # ----------------------------------------------------------------------------------- the group

    def getBackendName(self) -> str:
        return "tributary"

    def set_timeout(self, timeout: timedelta) -> None:
        self._timeout = timeout
        self._inner.set_timeout(timeout)

    def shutdown(self) -> None:
        """Ends the group when its reductions are over. Rank 0 prints where the bytes of all groups went.

        It aborts the group if none is over for ten seconds. So it does at once if an exception is on its way
        through the program, or Ctrl-C has ended a wait: the calls of the other ranks may need this rank.
        """
        if self._closed or os.getpid() != self._process:
            return
        self._closed = True
        failed = self._calls.abandoned() or sys.exc_info()[0] is not None
        if failed or not self._calls.stop(_WAITING):
            self._leave()
        seat, self._seat = self._seat, None
        if seat is not None:
            with contextlib.suppress(errors.TributaryError):  # the calls of this rank have raised it
                seat.close()
        world = torch.distributed.group.WORLD
        if isinstance(world, Group) and world is not self:
            world.traffic.add(self.traffic)  # it is the last that torch shuts down
        elif self.rank() == 0 and (self.traffic.calls or self.traffic.gloo):
            print(f"tributary: {self._card}: {self.traffic}", file=sys.stderr, flush=True)
        self._inner.shutdown()

    def abort(self) -> None:
        """Leaves the job at once. The calls of the other ranks raise MemberLostError."""
        if self._closed or os.getpid() != self._process:
            return
        self._closed = True
        self._leave()
        self._inner.abort()

    def _leave(self) -> None:
        """Leaves the job at once, and ends the reductions under way."""
        seat, self._seat = self._seat, None
        if seat is not None:
            seat.abort()
        self._calls.stop(_LEAVING)

    def _end(self) -> None:
        """Leaves the job, at the end of the program, if the group has not done so."""
        if self._seat is not None and os.getpid() == self._process:
            self._closed = True
            self._leave()

    def _explain(self, error: Exception) -> Exception:
        """Names the rank that shared the card and has gone. Adds the ranks of the world to other errors."""
        if isinstance(error, errors.DiedError | errors.EndedError) and not error.ranks:
            if self._seat is not None and self._seat.alone():
                # Groups of some ranks may use the card of another group's rank.
                known = torch.distributed.group.WORLD is self
                who = "rank 0" if known else "a rank"
                lost = errors.MemberLostError(f"{who}, which shared the card {self._seat.card}, has gone: {error}")
                lost.ranks = (0,) if known else ()
                error = lost
        world = self._options.global_ranks_in_group
        ranks = [rank for rank in getattr(error, "ranks", ()) if rank < len(world) and world[rank] != rank]
        if ranks:
            error.add_note("; ".join(f"rank {rank} of this group is rank {world[rank]} of all" for rank in ranks))
        return error


def _leave_to_gloo(name: str) -> None:
    """Leaves a call to the inner group."""

    def method(self: Group, *arguments: Any, **options: Any) -> Any:
        if not any(self._elsewhere(tensor) for tensor in _tensors.all_of(arguments)):
            if self._strict == "all" or (self._strict and name == "reduce"):
                raise errors.InputError(f"{name}: Gloo does it, and TRIBUTARY_STRICT is set")
        return self._by_gloo(name, *arguments, **options)

    method.__name__ = method.__qualname__ = name
    setattr(Group, name, method)


for _name in _OTHERS:
    _leave_to_gloo(_name)


def _places(tensors: Iterable[torch.Tensor]) -> Places:
    """Returns the memory of tensors: addresses from the first byte up to the last one."""
    places = []
    for tensor in tensors:
        if tensor.device.type == "cpu" and tensor.layout == torch.strided and tensor.numel():
            last = sum((size - 1) * step for size, step in zip(tensor.size(), tensor.stride(), strict=True))
            places.append((tensor.data_ptr(), tensor.data_ptr() + (last + 1) * tensor.element_size()))
    return places


def _overlap(places: Places) -> bool:
    """Reports whether two of these share memory."""
    places = sorted(places)
    return any(start < end for (_, end), (start, _) in itertools.pairwise(places))


def _list(tensors: Any) -> list[torch.Tensor]:
    return [tensors] if isinstance(tensors, torch.Tensor) else list(tensors)


def _complete(kind: Any, options: Any, timeout: timedelta | None) -> Any:
    """Returns the options of a call, which callers may give as an operation alone."""
    if isinstance(options, kind):
        return options
    made = kind()
    if options is not None:
        made.reduceOp = options
    if timeout is not None:
        made.timeout = timeout
    return made


def _operation(op: Any) -> str:
    return next((name for known, name in _OPERATIONS.items() if op == known), "")


def traffic(group: ProcessGroup | None = None) -> Traffic:
    """Returns how many bytes of this rank's calls went where, in a group (default: the whole world)."""
    found = group or torch.distributed.group.WORLD
    if not isinstance(found, Group):
        raise errors.InputError("traffic: the group's backend is not tributary")
    return found.traffic


# Groups of a program that ends without destroy_process_group.
_groups: "weakref.WeakSet[Group]" = weakref.WeakSet()


def _keep_in_child() -> None:
    """Keeps groups for ever in a forked child: the end of a Gloo group would wait for threads of the parent."""
    for group in list(_groups):
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(group))


os.register_at_fork(after_in_child=_keep_in_child)


@atexit.register
def _abort_all() -> None:
    for group in list(_groups):
        group._end()
