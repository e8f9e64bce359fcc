"""OSP against DDP, against a simulation of all ranks written from its formulas, and against misuse.

The ranks are processes. Each fixture starts them once for many scenarios, since PyTorch takes seconds to load.
"""

import pathlib
import sys
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

sys.path.insert(0, str(pathlib.Path(__file__).parent / "osp"))

import launch  # noqa: E402
import reference  # noqa: E402
import scenarios  # noqa: E402

from tributary.torch import OSP  # noqa: E402

RULES = {
    "sgd": reference.sgd(0.2),
    "momentum": reference.sgd(0.1, 0.9),
    "all of sgd": reference.sgd(0.1, 0.9, 0.01, 0.1),
    "nesterov": reference.sgd(0.1, 0.9, 0.01, nesterov=True),
    "adam": reference.adam(0.01, weight_decay=0.1),
    "adamw": reference.adamw(0.01, weight_decay=0.1),
}


torch.set_num_threads(1)  # as in the ranks: bits depend on it


@pytest.fixture(scope="module")
def two() -> Any:
    return launch.run(scenarios.two, 2)


@pytest.fixture(scope="module")
def three() -> Any:
    return launch.run(scenarios.three, 3)


@pytest.fixture
def alone(tmp_path):
    """A process group of this process alone, and a maker of models and OSPs."""
    dist.init_process_group("gloo", init_method=f"file://{tmp_path}/store", rank=0, world_size=1)

    def make(inner: nn.Module | None = None, **arguments: Any):
        model = DistributedDataParallel(inner or scenarios.net(), **arguments)
        return model, scenarios.OPTIMIZERS["momentum"](model)

    yield make
    dist.destroy_process_group()


class Simulation:
    """Two ranks of scenarios.net by the reference."""

    def __init__(self, rule: reference.Rule, deferred: float, control: str | None = None) -> None:
        self.net = scenarios.net()
        self.parameters = list(self.net.parameters())
        self.sizes = [p.numel() for p in self.parameters]
        self.ranks = reference.Reference(scenarios.flat(self.net), self.sizes, rule, deferred, 16, control)
        self.seen: list[list[torch.Tensor]] = []

    def gradient(self, step: int, rank: int) -> torch.Tensor:
        with torch.no_grad():
            for p, values in zip(self.parameters, self.ranks.seen(rank).split(self.sizes), strict=True):
                p.copy_(values.view(p.shape))
        gradients = torch.autograd.grad(scenarios.loss(self.net, step, rank), self.parameters)
        return torch.cat([g.reshape(-1) for g in gradients])

    def step(self, *batches: int) -> None:
        self.seen.append([self.ranks.seen(rank).clone() for rank in range(2)])
        sums = [[self.gradient(batch, rank) for batch in batches] for rank in range(2)]
        self.ranks.step([sum(rest, first) for first, *rest in sums])

    def run(self, steps: int) -> torch.Tensor:
        for step in range(steps):
            self.step(step)
        self.ranks.settle()
        return self.ranks.p


def matches(results: Any, simulation: Simulation) -> None:
    """What each rank computed with, and the end, are those of the simulation, bit for bit."""
    expected = simulation.run(8)
    for rank, result in enumerate(results):
        for step, (got, seen) in enumerate(zip(result["seen"], simulation.seen, strict=True)):
            assert torch.equal(got, seen[rank]), f"step {step}"
        assert torch.equal(result["p"], expected)
        state = [v for k, v in sorted(simulation.ranks.state.items()) if k != "t"]
        for name in range(len(state)):
            whole = torch.cat([s.reshape(-1) for s in result["state"] if s.dim()][name :: len(state)])
            assert torch.equal(whole, state[name])


@pytest.mark.parametrize("name", scenarios.OPTIMIZERS)
def test_nothing_deferred_is_ddp(two, name):
    for result in two:
        assert torch.equal(result["nothing", name]["p"], result["ddp", name])
        assert not result["nothing", name]["pending"]


@pytest.mark.parametrize("name", ["momentum", "adamw"])
def test_nothing_deferred_is_ddp_with_three(three, name):
    for result in three:
        assert torch.equal(result["nothing", name], result["ddp", name])


@pytest.mark.parametrize("variant", ["warm-up", "nothing, views"])
def test_is_ddp(two, variant):
    for result in two:
        assert torch.equal(result[variant]["p"], result["ddp", "momentum"])
    assert two[0]["warm-up"]["share"] is None


@pytest.mark.parametrize("name", scenarios.OPTIMIZERS)
def test_formula(two, name):
    results = [result["0.6", name] for result in two]
    assert all(result["pending"] for result in results)
    assert not torch.equal(results[0]["seen"][-1], results[1]["seen"][-1])
    matches(results, Simulation(RULES[name], 0.6))


def test_all_deferred(two):
    matches([result["all"] for result in two], Simulation(RULES["momentum"], 1.0))


def test_gradients_as_views(two):
    matches([result["views"] for result in two], Simulation(RULES["momentum"], 0.6))


def test_stage_two_ends_at_unlike_times(two):
    """Ranks start stage one at other times, and the number of messages is the same."""
    matches([result["unlike"] for result in two], Simulation(RULES["momentum"], 0.6))
    for result in two:
        assert torch.equal(result["unlike, accumulated"], result["accumulated"])


@pytest.mark.parametrize("control", ["stale", "drop"])
def test_control(two, control):
    results = [result[control] for result in two]
    matches(results, Simulation(RULES["momentum"], 0.6, control))
    assert results[0]["pending"] == (control == "stale")
    assert not torch.equal(results[0]["p"], two[0]["0.6", "momentum"]["p"])


@pytest.mark.parametrize("name", ["accumulated", "accumulated, no_sync"])
def test_accumulated(two, name):
    simulation = Simulation(RULES["momentum"], 0.6)
    for step in range(6):
        simulation.step(2 * step, 2 * step + 1)
    simulation.ranks.settle()
    assert torch.equal(two[0][name], two[1][name])
    if name == "accumulated":  # the first step adds means
        torch.testing.assert_close(two[0][name], simulation.ranks.p)
    else:
        assert torch.equal(two[0][name], simulation.ranks.p)


def test_scheduler(two):
    """A deferred update has the learning rate of its step."""
    simulation = Simulation(RULES["momentum"], 0.6)
    for step in range(6):
        simulation.ranks.rule = reference.sgd(0.1 * 0.5**step, 0.9)
        simulation.step(step)
    simulation.ranks.settle()
    assert torch.equal(two[0]["scheduled"], simulation.ranks.p)


@pytest.mark.parametrize("name", ["momentum", "adamw"])
def test_resume(two, name):
    for result in two:
        whole, resumed = result["resumed"][name]
        assert torch.equal(whole, resumed)


def test_load_replaces_the_choice(two):
    """flush has chosen the blocks of the next step; a state that is loaded then has the importance to choose by."""
    for result in two:
        first, again = result["reloaded"]
        assert torch.equal(first, again)


@pytest.mark.parametrize("name", ["momentum", "adamw"])
def test_flush_makes_ranks_equal(three, name):
    first = three[0]["deferred", name]
    assert all(torch.equal(result["deferred", name], first) for result in three)
    assert not torch.equal(first, three[0]["ddp", name])


def test_groups(three):
    """A half of the ranks with its second group, and all ranks in another order. OSP makes no group of a half."""
    assert torch.equal(three[0]["half"], three[2]["half"])
    assert all(torch.equal(result["backwards"], three[0]["backwards"]) for result in three)
    for rank in (0, 2):
        assert "let all ranks call dist.new_group([2, 0], sort_ranks=False)" in three[rank]["refused"]
    assert [result["later"] for result in three] == [3, 3, 3]


def test_dtypes(two):
    assert torch.equal(two[0]["kinds"], two[1]["kinds"])


def test_memory_formats(two):
    contiguous, channels_last = two[0]["images"]
    torch.testing.assert_close(contiguous, channels_last)
    assert torch.equal(channels_last, two[1]["images"][1])


@pytest.mark.parametrize("budget, share", [(0.9, 0.25), (0.2, 0.2)])
def test_agreement(two, budget, share):
    """Rank 0 could hide 50 %, rank 1 25 %: all defer 25 %, or less if the budget is less."""
    for rank, result in enumerate(two):
        before, after, lines = result["agreed"][budget]
        assert before is None
        assert after == share
        assert len(lines) == 1
        assert f"OSP defers {100 * share:.1f} % of 11140 bytes (budget {100 * budget:.1f} %)" in lines[0]
        assert f"{(50, 25)[rank]}.0 % fit" in lines[0]


def test_flush_compares(two):
    for result in two:
        assert "different parameters" in result["changed"]["parameter"]
        assert "different parameters" in result["changed"]["gradient"]
        assert "chose different blocks" in result["changed"]["choice"]
        assert result["changed"]["nothing"] == ""


def train(model: Any, osp: Any, steps: int) -> None:
    for step in range(steps):
        osp.zero_grad()
        scenarios.loss(model, step, 0).backward()
        osp.step()


def test_pending_refuses(alone):
    model, optimizer = alone()
    osp = OSP(model, optimizer, deferred=0.5, block=16)
    states = osp.state_dict(), model.state_dict(), optimizer.state_dict()
    train(model, osp, 2)
    calls = {
        "state_dict": [osp.state_dict, model.state_dict, model.module.state_dict, optimizer.state_dict],
        "load_state_dict": [
            lambda: osp.load_state_dict(states[0]),
            lambda: model.load_state_dict(states[1]),
            lambda: optimizer.load_state_dict(states[2]),
        ],
    }
    for name, all_of_them in calls.items():
        for call in all_of_them:
            with pytest.raises(RuntimeError, match=f"OSP: {name} while a correction is pending; call flush"):
                call()
    model.eval()
    with torch.no_grad(), pytest.raises(RuntimeError, match="an evaluation while a correction is pending"):
        model(torch.zeros(1, 64))
    scenarios.loss(model, 0, 0)  # with gradients, a model in this mode may be trained
    osp.flush()
    for call in calls["state_dict"] + calls["load_state_dict"]:
        call()
    with torch.no_grad():
        model(torch.zeros(1, 64))


def test_stage_one_starts_in_backward(alone, monkeypatch):
    """If stage two is over when a bucket is ready, the bucket does not wait for step()."""
    model, optimizer = alone()
    osp = OSP(model, optimizer, deferred=0.5, block=16)
    train(model, osp, 2)
    monkeypatch.setattr("tributary.torch.osp._Stage.over", lambda stage: stage.wait() or True)
    assert osp.pending
    osp.zero_grad()
    scenarios.loss(model, 2, 0).backward()
    assert osp._one.works
    osp.step()


def test_order_of_calls(alone):
    model, optimizer = alone()
    osp = OSP(model, optimizer, deferred=0.5, block=16)
    with pytest.raises(RuntimeError, match=r"step\(\) needs a backward pass"):
        osp.step()
    with model.no_sync():
        scenarios.loss(model, 0, 0).backward()
    with pytest.raises(RuntimeError, match=r"step\(\) needs a backward pass before it, outside of no_sync"):
        osp.step()
    train(model, osp, 2)
    with pytest.raises(RuntimeError, match=r"step\(\) needs a backward pass"):
        osp.step()
    scenarios.loss(model, 0, 0).backward()
    with pytest.raises(RuntimeError, match=r"flush\(\) between"):
        osp.flush()
    with pytest.raises(RuntimeError, match=r"call step\(\) of OSP"):
        optimizer.step()
    osp.step()
    osp.flush()


def test_gradient_missing(alone):
    model, optimizer = alone()
    osp = OSP(model, optimizer, deferred=0.5, block=16)
    scenarios.loss(model, 0, 0).backward()
    model.module[0].bias.grad = None
    with pytest.raises(RuntimeError, match="parameter 0.bias has no gradient"):
        osp.step()


def test_warm_up_with_accumulation(alone, monkeypatch):
    """Computations of 1 s and 2 s in one step, each with a reduction of 4 s: three quarters of a reduction fit."""
    model, optimizer = alone()
    osp = OSP(model, optimizer, warmup=1)
    clock = scenarios.Clock([None], [4.0])
    clock.gaps += [1.0, 0.0, 4.0] + [2.0, 0.0, 4.0] + [0.0]
    monkeypatch.setattr("tributary.torch.osp.time", clock)
    train(model, osp, 1)
    scenarios.loss(model, 1, 0).backward()
    scenarios.loss(model, 2, 0).backward()
    osp.step()
    assert osp.share == 0.75
    assert not clock.gaps


def test_unused_parameter(alone):
    """Where a parameter has no part in the loss, its bucket never arrives, though others do, and step refuses.

    DDP has one bucket in the first step, so the parameter has a part in that one.
    """

    class Skips(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.spare, self.net = nn.Linear(64, 64), scenarios.net()
            self.skip = False

        def forward(self, x):
            return self.net(x if self.skip else self.spare(x))

    inner = Skips()
    model, optimizer = alone(inner, bucket_cap_mb=0.004)
    osp = OSP(model, optimizer, deferred=0.5, block=16)
    train(model, osp, 1)
    inner.skip = True
    osp.zero_grad()
    scenarios.loss(model, 1, 0).backward()
    assert osp._buckets or osp._one.works
    with pytest.raises(RuntimeError, match=r"step\(\) needs a backward pass"):
        osp.step()


def test_parameter_added(alone):
    model, optimizer = alone()
    osp = OSP(model, optimizer, deferred=0.5, block=16)
    scenarios.loss(model, 0, 0).backward()
    optimizer.add_param_group({"params": [nn.Parameter(torch.zeros(1))]})
    with pytest.raises(RuntimeError, match="got or lost parameters"):
        osp.step()


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"deferred": 1.5}, "deferred is 1.5; it is a share"),
        ({"deferred": -0.1}, "deferred is -0.1"),
        ({"budget": float("nan")}, "budget is nan"),
        ({"block": 0}, "block is 0"),
        ({"warmup": 0}, "warmup is 0"),
        ({"control": "x"}, "control 'x' is unknown"),
    ],
)
def test_numbers(alone, arguments, message):
    with pytest.raises(ValueError, match=message):
        OSP(*alone(), **arguments)


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"find_unused_parameters": True}, "find_unused_parameters; every parameter needs a gradient"),
        ({"static_graph": True}, "static_graph"),
    ],
)
def test_refused_ddp(alone, arguments, message):
    with pytest.raises(ValueError, match=message):
        OSP(*alone(**arguments))


def test_refused_optimizer(alone):
    model, _ = alone()

    class Mine(torch.optim.SGD):
        pass

    for optimizer in (torch.optim.RMSprop(model.parameters()), Mine(model.parameters())):
        with pytest.raises(TypeError, match=f"the optimizer is {type(optimizer).__name__}; OSP knows SGD"):
            OSP(model, optimizer)


def test_refused_model(alone):
    model, optimizer = alone()
    with pytest.raises(TypeError, match="the model is a Sequential; wrap it"):
        OSP(model.module, optimizer)
    with pytest.raises(ValueError, match="gradients of 0 are sparse"):
        OSP(*alone(nn.Sequential(nn.Embedding(9, 4, sparse=True))))
    with pytest.raises(ValueError, match="parameter weight is torch.complex64 on cpu"):
        OSP(*alone(nn.Linear(2, 2, dtype=torch.complex64)))
    inner = nn.Linear(4, 4)
    inner.weight = nn.Parameter(torch.zeros(4, 4).t()[:, ::2])
    with pytest.raises(ValueError, match="parameter weight is not contiguous"):
        OSP(*alone(inner))


def test_refused_parameters(alone):
    model, _ = alone()
    some = torch.optim.SGD(list(model.parameters())[1:], lr=1)
    with pytest.raises(ValueError, match="parameter 0.weight is missing in the optimizer"):
        OSP(model, some)
    more = torch.optim.SGD([*model.parameters(), nn.Parameter(torch.zeros(1))], lr=1)
    with pytest.raises(ValueError, match="parameters that the model does not train"):
        OSP(model, more)


def test_sparse_gradient(alone):
    """A sparse gradient that no module announces."""

    class Table(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = nn.Parameter(torch.zeros(9, 4))

        def forward(self, x):
            return nn.functional.embedding(x, self.table, sparse=True)

    model, optimizer = alone(Table())
    OSP(model, optimizer)
    with pytest.raises(RuntimeError, match="a gradient is sparse|Sparse|sparse"):
        model(torch.tensor([1])).sum().backward()


def test_state_of_other_blocks(alone):
    osp = OSP(*alone(), deferred=0.5, block=16)
    other = OSP(*alone(), deferred=0.5, block=8)
    with pytest.raises(ValueError, match="the state has other blocks"):
        other.load_state_dict(osp.state_dict())


def test_blocks():
    """Blocks cover each tensor; the least important come first, at most the share of the bytes."""
    from tributary.torch._osp_blocks import Layout

    tensors = [torch.arange(10.0), torch.arange(6.0), torch.arange(3.0), torch.zeros(0), torch.tensor(5.0)]
    layout = Layout(tensors, 4)
    assert layout.sizes.tolist() == [16, 16, 8, 16, 8, 12, 4]
    assert layout.bytes == 80
    importance = torch.tensor([7.0, 1, 1, float("nan"), 5, 2, 2], dtype=torch.float64)
    for share, expected in [(0, []), (0.29, [1]), (0.3, [1, 2]), (0.5, [1, 2, 5, 6]), (1, [0, 1, 2, 3, 4, 5, 6])]:
        assert layout.least(importance, share).nonzero().view(-1).tolist() == expected
    chosen = layout.least(importance, 0.5)
    for i, expected in enumerate([[4, 5, 6, 7, 8, 9], [], [0, 1, 2], [], [5]]):
        part = layout.part(i, chosen)
        values = part.take(tensors[i].view(-1))
        assert values.tolist() == expected
        assert part.sums(values).tolist() == ([[22.0, 17.0], [], [3.0], [], [5.0]][i])
        part.put(tensors[i].view(-1), values + 100)
    assert tensors[0].tolist() == [0, 1, 2, 3, 104, 105, 106, 107, 108, 109]
    assert tensors[4].item() == 105


def test_default_block():
    from tributary.torch._osp_blocks import Layout

    assert Layout([torch.zeros(1000)], None).block == 32
    assert Layout([torch.zeros(1_000_000)], None).block == 245
