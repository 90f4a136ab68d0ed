"""A pipeline (notebook 09): the gradients of one process, what it keeps, and what it refuses."""

import pytest

from nbtorchrun.worker import worst

HEAD = """\
import torch, torch.distributed as dist
from torch import nn
from torch.nn.functional import cross_entropy, mse_loss
from cut_layers import cut
from pipeline_scratch import Pipeline
from nbtorchrun.worker import init, report
init()
rank, p = dist.get_rank(), dist.get_world_size()


def layers():
    torch.manual_seed(0)
    sizes = [5, 6, 7, 8, 6, 5, 7, 6, 4]
    made = [nn.Sequential(nn.Linear(a, b), nn.Tanh()) for a, b in zip(sizes, sizes[1:])]
    return nn.Sequential(*made).double()


def given(x, y):
    return x if rank == 0 else None, y if rank == p - 1 else None


def off(parts, whole):
    right = dict(whole.named_parameters())
    pairs = [(q, right[name]) for part in parts for name, q in part.named_parameters()]
    return max((a.grad - b.grad).abs().max().item() for a, b in pairs)


def batch(rows, seed=1):
    torch.manual_seed(seed)
    return torch.randn(rows, 5).double(), torch.randn(rows, 4).double()
"""
SHAPES = """
x, y = batch(6)
whole, model = layers(), layers()
part = cut(model, rank, p)
pipeline = Pipeline(part, mse_loss, 3)
for rows, name in ((6, "first"), (5, "fewer rows"), (7, "more rows")):
    x, y = batch(rows)
    model.zero_grad(), whole.zero_grad()
    for _ in range(2):  # gradients add up
        mse_loss(whole(x), y).backward()
        pipeline.step(*given(x, y))
        report(worst=off([part], whole))

# Longer sequences, tokens as inputs, a frozen first stage.
torch.manual_seed(0)
whole = nn.Sequential(nn.Embedding(9, 5), nn.Linear(5, 5), nn.Tanh(), nn.Linear(5, 9)).double()
whole[0].requires_grad_(False)
part = cut(whole, rank, p)
loss = lambda logits, targets: cross_entropy(logits.flatten(0, 1), targets.flatten())
pipeline = Pipeline(part, loss, 2, "zero_bubble")
for length in (4, 6, 4):
    tokens = torch.arange(3 * length).view(3, length) % 9
    whole.zero_grad()
    loss(whole(tokens), tokens).backward()
    right = {name: parameter.grad for name, parameter in whole.named_parameters()}
    for parameter in whole.parameters():
        parameter.grad = None
    pipeline.step(*given(tokens, tokens))
    ours = {name: parameter.grad for name, parameter in part.named_parameters()}
    same = [
        right[name] is None and grad is None or torch.allclose(grad, right[name], atol=1e-12)
        for name, grad in ours.items()
    ]
    report(worst=0.0 if all(same) else 1.0)
"""
GROUPS = """
whole = layers()
half = [dist.new_group([0, 1]), dist.new_group([2, 3])][rank // 2]
place = dist.get_rank(half)
x, y = batch(5, seed=rank // 2)
mse_loss(whole(x), y).backward()
model = layers()
part = cut(model, place, 2)
pipeline = Pipeline(part, mse_loss, 5, group=half)
pipeline.step(x if place == 0 else None, y if place == 1 else None)
report(worst=off([part], whole))
"""
SECOND = """
import pipeline_messages
pipeline_messages.dist.get_backend = lambda group=None: "nccl"  # which has no tags
groups = {n: [dist.new_group(range(n)) for _ in "FB"] for n in (2, 3)}  # on all ranks
for n, (group, gradients) in groups.items():
    if rank < n:
        whole, model, (x, y) = layers(), layers(), batch(5)
        mse_loss(whole(x), y).backward()
        part = cut(model, rank, n)
        try:
            Pipeline(part, mse_loss, 5, group=group)
        except ValueError as error:
            report(said=str(error))
        pipeline = Pipeline(part, mse_loss, 5, group=group, gradients=gradients)
        assert pipeline.messages.channels[0]["B"][0] is gradients
        pipeline.step(x if rank == 0 else None, y if rank == n - 1 else None)
        report(worst=off([part], whole))
pipeline = Pipeline(cut(layers(), rank, p), mse_loss, 5)  # of all ranks: it makes the group
assert pipeline.messages.channels[0]["B"][0] is not dist.group.WORLD

# Several stages on each rank: a pair of groups for each border.
whole, model, (x, y) = layers(), layers(), batch(5)
mse_loss(whole(x), y).backward()
parts = [cut(model, rank, 2 * p), cut(model, p + rank, 2 * p)]
pipeline = Pipeline(parts, mse_loss, 5, "interleaved")
used = [group for border in pipeline.messages.channels for group, _ in border.values()]
assert len(set(used)) == 2 * p
pipeline.step(x if rank == 0 else None, y if rank == p - 1 else None)
report(worst=off(parts, whole))
"""
PADDED = """
torch.manual_seed(0)
x, y = torch.randn(6, 4, 5).double(), torch.arange(24).view(6, 4) % 4
for row, length in enumerate((4, 4, 3, 1, 0, 0)):  # the last micro-batch is nothing but padding
    y[row, length:] = -100
loss = lambda logits, targets: cross_entropy(logits.flatten(0, 1), targets.flatten())
tokens = lambda targets: (targets != -100).sum()
for schedule in ("1f1b", "zero_bubble"):
    whole, model = layers(), layers()
    (right := loss(whole(x), y)).backward()
    part = cut(model, rank, p)
    found = Pipeline(part, loss, 3, schedule, weigh=tokens).step(*given(x, y))
    report(worst=off([part], whole) + (0 if found is None else abs(found - right).item()))
"""
OWN = """
from pipeline_actions import Action, Deadlock
x, y = batch(4)
whole, model = layers(), layers()
mse_loss(whole(x), y).backward()
part = cut(model, rank, p)


def backwards_turned(stage, stages, m):
    return [Action("F", i) for i in range(m)] + [Action("B", m - 1 - i) for i in range(m)]


def stuck(stage, stages, m):
    F, B = ([Action(kind, i) for i in range(m)] for kind in "FB")
    return F + B if stage else [action for pair in zip(F, B) for action in pair]


Pipeline(part, mse_loss, 4, backwards_turned).step(*given(x, y))
report(worst=off([part], whole))
try:
    Pipeline(part, mse_loss, 4, stuck)
except Deadlock as error:
    report(said=str(error))
"""
REFUSED = """
part, (x, y) = nn.Linear(5, 5).double(), batch(4)


def refused(name, call):
    try:
        call()
        report(name=name, said=None)
    except ValueError as error:
        report(name=name, said=str(error))


def step(inputs, targets, m=2):
    Pipeline(part, mse_loss, m).step(inputs, targets)


first, last = rank == 0, rank == p - 1
refused("stages", lambda: cut(nn.Sequential(part, part), rank, 3))
refused("m", lambda: Pipeline(part, mse_loss, 0))
refused("schedule", lambda: Pipeline(part, mse_loss, 2, "2f2b"))
refused("chunks", lambda: Pipeline([part, part], mse_loss, 2))
refused("inputs", lambda: step(x if rank == 1 else None, y if last else None))
refused("targets", lambda: step(x if first else None, None))
refused("targets on the first", lambda: step(x if first else None, y if first else None))
refused("rows", lambda: step(x if first else None, y[:3] if last else None))
refused("few", lambda: step(x if first else None, y if last else None, m=5))
refused("lost", lambda: Pipeline(part, mse_loss, 2, lambda *sizes: []))
"""
SAYS = {
    "stages": "2 layers cannot be cut into 3 stages",
    "m": "microbatches = 0: a step needs at least one",
    "schedule": "there is no schedule '2f2b'; there are gpipe, 1f1b, interleaved, zero_bubble",
    "chunks": "only the schedule 'interleaved' runs several chunks",
    "inputs": "inputs are missing: give them to the first rank, rank 0",
    "targets": "targets are missing: give them to the last rank, rank 2",
    "targets on the first": "rank 0 was given targets: only the last rank, rank 2, takes them",
    "rows": "4 inputs but 3 targets",
    "few": "4 samples cannot fill 5 micro-batches",
    "lost": "the list of rank 0 lacks an action",
}


def largest(run):
    """The largest difference that any rank reported; not-a-number is infinite."""
    return worst(report["worst"] for report in run.reports if "worst" in report)


# That every schedule has the gradients of one process on 2, 3 and 4 ranks is tested in notebook 09.
@pytest.mark.parametrize("p", [1, 3])
def test_batches_may_change_their_rows_and_their_shape(worker, launch, p):
    run = launch(worker("pipeline_shapes.py", HEAD + SHAPES), nproc=p)
    assert largest(run) < 1e-10


def test_two_pipelines_run_side_by_side(worker, launch):
    run = launch(worker("pipeline_groups.py", HEAD + GROUPS), nproc=4)
    assert largest(run) < 1e-10


def test_gradients_travel_in_a_second_group_where_there_are_no_tags(worker, launch):
    run = launch(worker("pipeline_second.py", HEAD + SECOND), nproc=4)
    assert largest(run) < 1e-10
    assert "call dist.new_group on all ranks" in run.series("said", rank=0)[0]


def test_micro_batches_may_be_weighed_by_their_tokens(worker, launch):
    run = launch(worker("pipeline_padded.py", HEAD + PADDED), nproc=3)
    found = [report["worst"] for report in run.reports]
    assert len(found) == 6
    assert all(value < 1e-10 for value in found)  # not-a-number is not


def test_a_schedule_of_one_s_own_runs_and_one_that_deadlocks_never_starts(worker, launch):
    run = launch(worker("pipeline_own.py", HEAD + OWN), nproc=3)
    assert largest(run) < 1e-10
    assert "rank 0 cannot begin B0" in run.series("said", rank=1)[0]


def test_mistakes_are_refused_in_one_sentence_on_every_rank(worker, launch):
    run = launch(worker("pipeline_refused.py", HEAD + REFUSED), nproc=3)
    for rank in range(3):
        said = dict(zip(run.series("name", rank), run.series("said", rank), strict=True))
        assert set(said) == set(SAYS)
        for name, part in SAYS.items():
            assert part in (said[name] or ""), (rank, name, said[name])
            assert "\n" not in said[name]


FAILING = """
import time

def fail():
    FAILS

class Picky(nn.Linear):
    def forward(self, x):
        return fail() if x.isnan().any() else super().forward(x)

x, y = batch(4)
x[2] = float("nan")
part = (Picky if rank == 1 else nn.Linear)(5, 5).double()
Pipeline(part, mse_loss, 4).step(*given(x, x))
"""


@pytest.mark.parametrize(
    ("kind", "fails", "said"),
    [
        ("raised", "raise ValueError('not a number')", "rank 1 raised ValueError: not a number"),
        ("hung", "time.sleep(600)", "rank 1, in F2, on stage 1 of the model, is at workers/fails"),
    ],
)
def test_a_stage_that_fails_is_named_with_its_micro_batch(worker, launch, kind, fails, said):
    script = worker("fails.py", HEAD + FAILING.replace("FAILS", fails))
    run = launch(script, nproc=3, check=False, stall=3)
    assert (run.verdict.kind, run.verdict.rank) == (kind, 1)
    assert said in str(run.verdict)
    assert "in F2, on stage 1 of the model" in str(run.verdict)
