"""What the ranks of tests do. Each function runs in every rank; Pool.run names it.

Tensors come from formulas that the tests repeat with NumPy, or from arrays that the tests hand over.
"""

import atexit
import gc
import os
import signal
import threading
import time
import warnings
from datetime import timedelta

import numpy as np
import torch
import torch.distributed as dist

BITS = {1: torch.uint8, 2: torch.uint16, 4: torch.int32}


def _through_card(group=None):
    """Returns how many calls of this group went to the card, and the names of those that Gloo did."""
    from tributary.torch import traffic

    found = traffic(group)
    return found.calls, sorted(found.gloo)


# ------------------------------------------------------------------------------------------- sums


def sums(rank, size, array, op="SUM", times=1, dtype=None):
    """Sums an array, or its bits as a tensor of dtype. Returns the sums, and where they came from."""
    results = []
    for _ in range(times):
        tensor = torch.from_numpy(array.copy())
        if dtype is not None:
            tensor = tensor.view(getattr(torch, dtype))
        dist.all_reduce(tensor, getattr(dist.ReduceOp, op))
        if dtype is not None:
            tensor = tensor.view(BITS[tensor.element_size()])
        results.append(tensor.numpy())
    return results, _through_card() if dist.get_backend() == "tributary" else None


def coalesced(rank, size):
    """Returns the sums of three tensors of one call, one of them empty."""
    tensors = [torch.full((3, 2), float(rank)), torch.zeros(0), torch.arange(5.0) * rank]
    dist.all_reduce_coalesced(tensors)
    work = dist.all_reduce_coalesced(tensors, async_op=True)
    work.wait()
    return [tensor.numpy() for tensor in tensors], _through_card()


def functional(rank, size):
    """Returns what torch's functional collectives make of a tensor."""
    import torch.distributed._functional_collectives as collectives

    tensor = torch.arange(8.0) + rank
    summed = collectives.all_reduce(tensor, "sum", dist.group.WORLD)
    mean = collectives.all_reduce(tensor, "avg", dist.group.WORLD)
    part = collectives.reduce_scatter_tensor(tensor, "sum", 0, dist.group.WORLD)
    several = collectives.all_reduce_coalesced([tensor, tensor * 2], "sum", dist.group.WORLD)
    parts = collectives.reduce_scatter_tensor_coalesced([tensor], "sum", [0], dist.group.WORLD)
    whole = collectives.all_gather_tensor(part, 0, dist.group.WORLD)
    results = [tensor, summed, mean, part, *several, *parts, whole]
    return [(result + 0).numpy() for result in results], _through_card()


def scattered(rank, size, variant):
    """Returns the part of a sum of this rank. The whole of a rank is arange(12) * (rank + 1)."""
    whole = torch.arange(3.0 * size) * (rank + 1)
    out = torch.full((3,), -1.0)
    if variant == "list":
        dist.reduce_scatter(out, list(whole.view(size, 3).clone().unbind(0)))
    elif variant == "tensor":
        dist.reduce_scatter_tensor(out, whole)
    elif variant == "async":
        work = dist.reduce_scatter_tensor(out, whole, async_op=True)
        assert work.get_future().wait()[0].data_ptr() == out.data_ptr()
        work.wait()
    elif variant == "average":
        dist.reduce_scatter_tensor(out, whole, dist.ReduceOp.AVG)
    elif variant == "matrix":
        out = torch.full((1, 3), -1.0)
        dist.reduce_scatter_tensor(out, whole.view(size, 3))
    elif variant == "not contiguous":
        wide = torch.full((3, 2), -1.0)
        dist.reduce_scatter_tensor(wide[:, 1], whole)
        assert (wide[:, 0] == -1).all()
        out = wide[:, 1].clone()
    elif variant == "different parts":
        dist.reduce_scatter(out, [torch.zeros(2)] * size)
    elif variant == "too short":
        dist.reduce_scatter_tensor(out, torch.zeros(3 * size + 1))
    elif variant == "in place":
        dist.reduce_scatter_tensor(whole[3 * rank : 3 * rank + 3], whole)
        out = whole[3 * rank : 3 * rank + 3].clone()
        whole[3 * rank : 3 * rank + 3] = torch.arange(3.0 * size)[3 * rank : 3 * rank + 3] * (rank + 1)
    assert (whole == torch.arange(3.0 * size) * (rank + 1)).all(), "the input has changed"
    return out.numpy(), _through_card()


# ------------------------------------------------------------------------------- several at once


def reverse(rank, size, calls, count):
    """Starts many sums, and waits for them in reverse. Returns the sums, and the order in which futures ended."""
    ended = []
    tensors = [torch.full((count * (calls - i),), float(rank + i)) for i in range(calls)]
    works = [dist.all_reduce(tensor, async_op=True) for tensor in tensors]
    for i, work in enumerate(works):
        work.get_future().then(lambda _, i=i: ended.append(i))
    for work in reversed(works):
        work.wait()
    for work in works:
        work.get_future().wait()
    while len(ended) < calls:  # callbacks run after the waits end
        time.sleep(0.01)
    return [(float(tensor[0]), float(tensor[-1])) for tensor in tensors], ended


def dropped(rank, size):
    """Starts sums of tensors that the caller forgets, and returns the sum of a later one."""
    kept = []
    for i in range(30):
        tensor = torch.full((5000,), float(i))
        future = dist.all_reduce(tensor, async_op=True).get_future()
        if i % 3 == 0:
            kept.append((i, future))
        del tensor, future
        torch.full((5000,), -1.0)  # takes the memory, if it was freed
    results = [float(future.wait()[0].min()) == float(future.wait()[0].max()) == size * i for i, future in kept]
    last = torch.ones(3)
    dist.all_reduce(last)
    return results, last.numpy()


def work_methods(rank, size):
    """Returns what a Work answers before the end of its call, and after it."""
    first = rank == 0
    tensor = torch.ones(4)
    dist.barrier()
    if not first:
        # The call cannot be over before rank 0 makes it.
        work = dist.all_reduce(tensor, async_op=True)
        before = [work.is_completed(), work.is_success(), work.exception(), work.get_future().done()]
        try:
            work.wait(timedelta(milliseconds=50))
            raise AssertionError("the wait was not limited")
        except TimeoutError as error:
            before.append(type(error).__name__)
        dist.barrier()
    else:
        dist.barrier()
        before = [False, False, None, False, "RunningError"]
        work = dist.all_reduce(tensor, async_op=True)
    done = work.wait()
    work.synchronize()
    after = [done, work.is_completed(), work.is_success(), work.exception(), work.result()[0] is tensor]
    after.append(work.get_future().wait()[0].data_ptr() == tensor.data_ptr())
    return before, after


def nested(rank, size):
    """Waits for a sum in a callback of another one, as PowerSGD does."""
    tensor = torch.full((4,), float(rank))

    def again(future):
        inner = future.value()[0].clone()
        return dist.all_reduce(inner, async_op=True).get_future().wait()[0]

    def synchronous(future):
        inner = future.value().clone()
        dist.all_reduce(inner)
        return inner

    future = dist.all_reduce(tensor, async_op=True).get_future().then(again).then(synchronous)
    other = torch.full((4,), 1.0)
    dist.barrier()
    return future.wait().numpy(), other.numpy()


def power_sgd(rank, size):
    """Trains with PowerSGD's hook. Returns the parameters."""
    from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook

    torch.manual_seed(0)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(40, 30))
    state = powerSGD_hook.PowerSGDState(
        None, matrix_approximation_rank=1, start_powerSGD_iter=2, min_compression_rate=0.5
    )
    model.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(4):
        torch.manual_seed(100 * step + rank)
        optimizer.zero_grad()
        model(torch.randn(8, 40)).square().mean().backward()
        optimizer.step()
    return torch.cat([p.detach().reshape(-1) for p in model.parameters()]).numpy()


def same_tensor(rank, size, start):
    """Sums one tensor three times, all at once."""
    tensor = torch.ones(100000) if start == "contiguous" else torch.ones(1000, 100).t()
    works = [dist.all_reduce(tensor, async_op=True) for _ in range(3)]
    for work in works:
        work.wait()
    parts = torch.ones(1000)
    dist.all_reduce_coalesced([parts, parts[500:]])
    return float(tensor.min()), float(tensor.max()), float(parts[0]), float(parts[-1])


# -------------------------------------------------------------------------------- kinds of tensors

KINDS = {
    "contiguous": lambda t: t,
    "transposed": lambda t: t.t(),
    "every second": lambda t: t[::2, 1::2],
    "one column": lambda t: t[:, 3],
    "channels last": lambda t: t.view(2, 3, 4, 5).to(memory_format=torch.channels_last),
    "negative": lambda t: torch._neg_view(-t),
    "imaginary part": lambda t: torch.complex(t, -t).conj().imag,  # is_neg, and every second element
    "0-dim": lambda t: t[1, 1].clone(),
    "0-dim view": lambda t: t[1, 1],
    "one element": lambda t: t[1:2, 1:2],
    "expanded by one": lambda t: t[:, 3:4].t().expand(1, 6),
    "offset": lambda t: t.view(-1)[7:],
    "conjugate": lambda t: torch.complex(t, 2 * t).conj(),
    "complex": lambda t: torch.complex(t, 2 * t),
    "complex128": lambda t: torch.complex(t, 2 * t).to(torch.complex128),
    "float64": lambda t: t.double(),
    "int64": lambda t: t.long(),
    "sparse": lambda t: torch.where(t > 50, t, 0).to_sparse(),
    "empty": lambda t: t[:0],
    "no elements": lambda t: torch.zeros(3, 0, 2),
    "expanded": lambda t: t[:1].expand(6, 20),
    "meta": lambda t: t.to("meta"),
}


def kind(rank, size, name, op="SUM", dtype="float32"):
    """Sums a tensor of a kind. Element i of rank r is i + r. Returns the sums as a contiguous array."""
    whole = (torch.arange(120.0) + rank).view(6, 20).to(getattr(torch, dtype))
    tensor = KINDS[name](whole)
    strides = None if tensor.is_sparse else tensor.stride()
    dist.all_reduce(tensor, getattr(dist.ReduceOp, op))
    assert strides is None or tensor.stride() == strides
    dense = tensor.to_dense() if tensor.is_sparse else tensor
    around = whole.double().numpy() if dtype == "float32" else None  # what a view must leave alone
    dense = dense.detach().resolve_conj().resolve_neg().contiguous()
    return dense.numpy(), _through_card(), around


def leaf(rank, size):
    """Sums a leaf that requires a gradient, and a parameter with its gradient."""
    tensor = torch.full((5,), float(rank), requires_grad=True)
    dist.all_reduce(tensor)
    parameter = torch.nn.Parameter(torch.ones(2, 3).t())
    (parameter * (rank + 1)).sum().backward()
    dist.all_reduce(parameter.grad)
    dist.all_reduce(parameter)
    assert parameter.requires_grad and parameter.is_leaf and tensor.requires_grad
    with torch.inference_mode():
        inner = torch.ones(3)
        dist.all_reduce(inner)
    return [t.detach().numpy() for t in (tensor, parameter.grad, parameter)] + [inner.numpy()]


def strict(rank, size, call):
    """Makes a call that Gloo does."""
    tensor = torch.ones(4, dtype=torch.float64)
    calls = {
        "float32": lambda: dist.all_reduce(torch.ones(4)),
        "float64": lambda: dist.all_reduce(tensor),
        "min": lambda: dist.all_reduce(torch.ones(4), dist.ReduceOp.MIN),
        "reduce": lambda: dist.reduce(torch.ones(4), 0),
        "sparse": lambda: dist.all_reduce(torch.ones(4).to_sparse()),
        "coalesced": lambda: dist.all_reduce_coalesced([tensor, tensor.clone()]),
        "scatter": lambda: dist.reduce_scatter_tensor(tensor[:1], tensor),
        "broadcast": lambda: dist.broadcast(tensor, 0),
        "gather": lambda: dist.all_gather([torch.zeros(4) for _ in range(size)], torch.ones(4)),
        "barrier": lambda: dist.barrier(),
        "objects": lambda: dist.all_gather_object([None] * size, rank),
        "send": lambda: dist.send(tensor, 1) if rank == 0 else dist.recv(tensor, 0) if rank == 1 else None,
    }
    calls[call]()
    return _through_card()


def devices(rank, size, store):
    """Makes a group with another backend for another device. Returns its parts."""
    timeout = timedelta(seconds=60)
    dist.init_process_group(
        "cpu:tributary,cuda:gloo", store=store, rank=rank, world_size=size, timeout=timeout
    )
    tensor = torch.full((3,), float(rank))
    dist.all_reduce(tensor)
    group = dist.group.WORLD
    result = tensor.numpy(), _through_card(), dist.get_backend_config(), type(group).__name__
    asked = group._elsewhere(_OnGPU())
    gpu = group._get_backend(torch.device("cuda")).name()
    sub = dist.new_group([0, 1])
    if rank < 2:
        dist.all_reduce(tensor, group=sub)
    dist.destroy_process_group()
    return *result, asked, gpu, tensor.numpy()


class _OnGPU:
    """What the group asks of a tensor on a GPU; there is none here."""

    device = torch.device("cuda", 0)


# ------------------------------------------------------------------------------------------ groups


def subgroups(rank, size):
    """Sums in two halves and in all, each a job of its own."""
    halves = [dist.new_group([0, 1]), dist.new_group([2, 3])]
    mine = halves[rank // 2]
    tensors = [torch.full((1000,), float(rank)) for _ in range(3)]
    works = [dist.all_reduce(tensors[0], async_op=True), dist.all_reduce(tensors[1], group=mine, async_op=True)]
    if rank < 2:  # the other half makes no such call
        works.append(dist.all_reduce(tensors[2], group=mine, async_op=True))
    for work in works:
        work.wait()
    return [float(tensor[0]) for tensor in tensors], _through_card(), _through_card(mine)


def no_room(rank, size):
    """Makes a group for which the card has no room, and sums in it."""
    tensor = torch.full((3,), float(rank))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            sub = dist.new_group([1, 2, 3])
            if rank > 0:
                dist.all_reduce(tensor, group=sub)
                dist.all_reduce(tensor, group=sub)
        finally:
            dist.barrier()  # rank 0 shares the card
    told = [str(warning.message) for warning in caught if "tributary" in str(warning.message)]
    return tensor.numpy(), told, _through_card(sub) if rank > 0 else None


def threads(rank, size, times):
    """Sums in two groups from two threads at once. Returns how many sums were right in each."""
    groups = [dist.group.WORLD, dist.new_group(list(range(size)))]
    right = [0, 0]

    def work(number):
        for i in range(times):
            tensor = torch.full((777,), float(rank + i * number))
            dist.all_reduce(tensor, group=groups[number])
            right[number] += bool((tensor == size * (size - 1) / 2 + size * i * number).all())

    made = [threading.Thread(target=work, args=(number,)) for number in range(2)]
    for thread in made:
        thread.start()
    for thread in made:
        thread.join()
    return right


def again(rank, size):
    """Makes and destroys groups, one after another."""
    results = []
    for i in range(4):
        sub = dist.new_group([0, 2])
        if rank in (0, 2):
            tensor = torch.full((3,), float(rank + i))
            dist.all_reduce(tensor, group=sub)
            results.append((float(tensor[0]), *_through_card(sub)))
            dist.destroy_process_group(sub)
        dist.barrier()
    return results


def worlds(rank, size, store):
    """Makes and destroys the world three times."""
    results = []
    for i in range(3):
        dist.init_process_group(
            "tributary",
            store=dist.PrefixStore(str(i), store),
            rank=rank,
            world_size=size,
            timeout=timedelta(seconds=60),
        )
        tensor = torch.full((3,), float(rank + i))
        dist.all_reduce(tensor)
        results.append((float(tensor[0]), *_through_card()))
        dist.destroy_process_group()
    return results


def within_gloo(rank, size):
    """Makes groups of this backend in a world of Gloo: two, each with a card of its own."""
    groups = [dist.new_group([0, 1], backend="tributary"), dist.new_group([3, 2], backend="tributary")]
    tensor = torch.full((3,), float(rank))
    dist.all_reduce(tensor, group=groups[rank // 2])
    where = _through_card(groups[rank // 2])
    dist.barrier()
    return tensor.numpy(), where


def timeouts(rank, size, how):
    """Rank 1 makes no call. Returns the error of the others, and how long it took."""
    start = time.monotonic()
    tensor = torch.ones(3)
    if how == "set":
        dist.distributed_c10d._set_pg_timeout(timedelta(seconds=2), dist.group.WORLD)
    if rank == 1:
        time.sleep(8)
        return "", 0.0, ""
    try:
        if how == "call":
            options = dist.AllreduceOptions()
            options.timeout = timedelta(seconds=2)
            work = dist.group.WORLD.allreduce([tensor], options)
            told = []
            future = work.get_future().then(lambda f: told.append(f.wait()))
            try:
                future.wait()
            except Exception as error:
                told.append(str(error))
            assert "not over" in told[0], told
            work.wait()
        else:
            dist.all_reduce(tensor)
        return "no error", 0.0, ""
    except Exception as error:
        took = time.monotonic() - start
        try:
            dist.all_reduce(tensor)
            later = "no error"
        except Exception as after:
            later = type(after).__name__
        return f"{type(error).__name__}: {error}", took, later


def machine(rank, size, store, name):
    """Makes a group as a rank on another machine."""
    from tributary.torch import _seat

    _seat._machine, before = (lambda: name), _seat._machine
    try:
        dist.init_process_group("tributary", store=store, rank=rank, world_size=size, timeout=timedelta(seconds=60))
    finally:
        _seat._machine = before


def nothing(rank, size):
    """Only makes a group."""
    return None


def closed(rank, size):
    """Uses a group after abort, and after destroy."""
    group = dist.group.WORLD
    tensor = torch.ones(3)
    group.abort()
    errors = []
    for call in (lambda: group.allreduce([tensor], dist.AllreduceOptions()), lambda: dist.all_reduce(tensor)):
        try:
            call()
            errors.append("no error")
        except Exception as error:
            errors.append(f"{type(error).__name__}: {error}")
    return errors


def stricts(rank, size, store, strict):
    """Makes a group with a value of TRIBUTARY_STRICT of this rank's own."""
    os.environ["TRIBUTARY_STRICT"] = strict
    dist.init_process_group("tributary", store=store, rank=rank, world_size=size, timeout=timedelta(seconds=60))


# ---------------------------------------------------------------------------------------- training


def network():
    """Returns a small network and its number of parameters."""
    torch.manual_seed(7)
    made = torch.nn.Sequential(torch.nn.Linear(20, 40), torch.nn.Tanh(), torch.nn.Linear(40, 5))
    return made, sum(parameter.numel() for parameter in made.parameters())


def batch(step, rank):
    """Returns inputs and labels of a rank in a step."""
    random = torch.Generator().manual_seed(1000 * step + rank)
    inputs = torch.randn(16, 20, generator=random)
    return inputs, (inputs[:, :5] + 0.1 * torch.randn(16, 5, generator=random)).argmax(1)


def train(rank, size, steps):
    """Trains by DDP. Returns the losses, the bits of all parameters after each step, and traffic."""
    from tributary.torch import traffic

    made, count = network()
    model = torch.nn.parallel.DistributedDataParallel(made, bucket_cap_mb=0.0005)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9)
    losses, replicas = [], []
    for step in range(steps):
        inputs, labels = batch(step, rank)
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(inputs), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        replicas.append(b"".join(p.detach().numpy().tobytes() for p in model.parameters()))
    found = traffic()
    return losses, replicas, (found.card, found.gloo, 4 * count * steps)


def train_with_model(rank, size, store, steps, card, workers):
    """Trains alone what train does with ranks, and sums with a card of package tributary. Returns all losses."""
    import tributary

    made, _ = network()
    optimizer = torch.optim.SGD(made.parameters(), lr=0.2, momentum=0.9)
    losses = []
    with tributary.open(card) as opened, opened.job(workers=workers) as job:
        for step in range(steps):
            gradients, found = [], []
            for worker in range(workers):
                inputs, labels = batch(step, worker)
                optimizer.zero_grad()
                loss = torch.nn.functional.cross_entropy(made(inputs), labels)
                loss.backward()
                found.append(loss.item())
                gradients.append(torch.cat([p.grad.reshape(-1) for p in made.parameters()]).div_(workers).numpy())
            mean = torch.from_numpy(job.reduce(gradients))
            for parameter in made.parameters():
                parameter.grad, mean = mean[: parameter.numel()].view_as(parameter).clone(), mean[parameter.numel() :]
            optimizer.step()
            losses.append(found)
    return losses


# ------------------------------------------------------------------------------ what ends too early


def lost(rank, size, kill):
    """Trains, and in the third backward pass rank `kill[0]` kills process `kill[1]`, or itself.

    Returns the error of the others, of the call after it, and how many seconds it took.
    """
    made, _ = network()
    model = torch.nn.parallel.DistributedDataParallel(made, bucket_cap_mb=0.0005)
    step = 0

    def die(gradient):
        if step == 2 and rank == kill[0]:
            os.kill(kill[1] or os.getpid(), signal.SIGKILL)
            if not kill[1]:
                time.sleep(60)
        return gradient

    made[0].weight.register_hook(die)
    start = time.monotonic()
    try:
        for step in range(50):
            inputs, labels = batch(step, rank)
            start = time.monotonic()
            torch.nn.functional.cross_entropy(model(inputs), labels).backward()
    except Exception as error:
        took = time.monotonic() - start
        later = ""
        try:
            dist.all_reduce(torch.ones(3))
        except Exception as after:
            later = f"{type(after).__name__}: {after} {getattr(after, '__notes__', '')}"
        return step, f"{type(error).__name__}: {error}", later, took
    return step, "no error", "", 0.0


def simulator(rank, size):
    """Returns the process of the simulator that rank 0 has started, and leaves the group."""
    return _children(os.getpid())


def _children(pid):
    """Returns the children of a process."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/stat") as file:
                    fields = file.read().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[1]) == pid:
                found.append(int(entry))
    return found


def lost_card(rank, size, daemon):
    """Like lost: rank 1 kills the simulator, a child of the daemon or of rank 0."""
    pids = [None]
    if rank == 0:
        pids = [next(p for p in _children(daemon or os.getpid()) if "sim" in open(f"/proc/{p}/cmdline").read())]
    dist.broadcast_object_list(pids, 0)
    return pids[0], lost(rank, size, (1, pids[0]))


def forked(rank, size):
    """Forks, calls in the child, and goes on. Returns what the child got, and sums of the parent."""
    read, write = os.pipe()
    tensor = torch.ones(3)
    child = os.fork()
    if child == 0:
        told = []
        for call in (
            lambda: dist.all_reduce(tensor),
            lambda: dist.broadcast(tensor, 0),
            lambda: dist.barrier(),
            lambda: dist.reduce_scatter_tensor(tensor[:1], torch.ones(size)),
        ):
            try:
                call()
                told.append("no error")
            except BaseException as error:
                told.append(type(error).__name__)
        dist.destroy_process_group()
        gc.collect()
        atexit._run_exitfuncs()  # what the end of a program calls
        os.write(write, " ".join(told).encode())
        os._exit(0)
    os.close(write)
    told = os.read(read, 1000).decode()
    os.waitpid(child, 0)
    dist.all_reduce(tensor)
    sub = dist.new_group([0, 1])  # joins by the socket in rank 0's folder
    if rank < 2:
        dist.all_reduce(tensor, group=sub)
    return told, tensor.numpy()


class _Numbers(torch.utils.data.Dataset):
    def __len__(self):
        return 40

    def __getitem__(self, index):
        return torch.full((4,), float(index))


def loader(rank, size):
    """Sums batches that forked workers of a DataLoader make."""
    totals = []
    batches = torch.utils.data.DataLoader(_Numbers(), batch_size=10, num_workers=2, multiprocessing_context="fork")
    for _ in range(2):
        for numbers in batches:
            total = numbers.sum(0)
            dist.all_reduce(total)
            totals.append(float(total[0]))
    return totals


def raises(rank, size):
    """Rank 1 fails between two calls, and destroys its group on the way out. The others wait for it."""
    dist.all_reduce(torch.ones(3))
    try:
        if rank == 1:
            raise ArithmeticError("the loss is not a number")
        dist.all_reduce(torch.ones(3))
    finally:
        dist.destroy_process_group()


def interrupted(rank, size, where):
    """Every rank gets Ctrl-C: rank 1 computes, the others wait for it. The group is destroyed at the end."""
    import torch.distributed._functional_collectives as collectives

    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
    collectives.wait_tensor(collectives.all_reduce(torch.ones(3), "sum", dist.group.WORLD))
    timer = threading.Timer(1.0, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    tensor = torch.ones(3)
    try:
        if rank == 1:
            time.sleep(120)
        elif where == "all_reduce":
            dist.all_reduce(tensor)
        elif where == "work":
            dist.all_reduce(tensor, async_op=True).wait()
        elif where == "functional":
            collectives.wait_tensor(collectives.all_reduce(tensor, "sum", dist.group.WORLD))
        elif where == "elsewhere":
            dist.all_reduce(tensor, async_op=True)
            time.sleep(120)
    finally:
        timer.cancel()
        if where == "elsewhere":
            dist.destroy_process_group()


def leave(rank, size, store, how):
    """Ends the program without the end of the group."""
    dist.init_process_group("tributary", store=store, rank=rank, world_size=size, timeout=timedelta(seconds=100))
    tensor = torch.ones(300000)
    dist.all_reduce(tensor)
    if how == "under way" and rank != 1:
        works = [dist.all_reduce(tensor.clone(), async_op=True) for _ in range(5)]
        works[0].get_future().then(lambda _: None)
        globals()["_kept"] = works
    if how == "killed":
        store.set(f"summed/{rank}", "")
        store.wait([f"summed/{other}" for other in range(size)])  # a rank that fails removes the folder
        os.kill(os.getpid(), signal.SIGKILL)
    return "leave"
