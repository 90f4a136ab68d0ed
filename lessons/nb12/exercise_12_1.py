"""12.1: dispatch and combine."""

from collections.abc import Callable

import torch
import torch.distributed as dist
from torch import Tensor

from course_utils.checking.compare import Wrong, expect_calls, judge, kind
from course_utils.checking.findings import all_and_pair, judging, observe, random_values, where
from course_utils.checking.values import is_tensor

TITLE = "dispatch and combine"
PROVEN = (
    "1 to 4 ranks, and pairs of 4; uneven, empty and silent ranks; rows (n, D) and (n,); two plans",
    "at a time: every row arrives once and returns to its place, gradients too, by one exchange",
)
RANKS = (2, 3, 4, 1)
LONELY = "A rank with nothing to send has to call `exchange`, too: the others wait for it."
HINTS = {
    "Number of tensor splits": "`exchange` needs one number for each rank of the group. Does every "
    "call get `group`, and does `bincount` count ranks to which nobody sends (`minlength`)?",
    "Split sizes": "`send` adds up to the rows that you pass to `exchange`. Which list says what "
    "leaves this rank, and which what comes? On the way back they change places. Each "
    "call has its own plan.",
    "too many indices for tensor": "Rows may also be (n,). Index only the first dimension.",
    "the number of sizes provided": "Rows may also be (n,). Which way of sorting fits any rows?",
    "list index out of range": "`exchange` needs one number for each rank of the group. Does every "
    "call get `group`, and does `bincount` count ranks to which nobody sends (`minlength`)?",
}
OURS = '''"""Send each row to the rank that works on it, and bring the results back in order."""

from typing import Any, NamedTuple

from between_ranks import exchange, gather_numbers, ranks_of
from torch import Tensor


class Plan(NamedTuple):
    """How the rows of this rank travel."""

    order: Tensor  # (n,): the rows sorted by the rank they go to
    send: list[int]  # how many rows go to each rank
    receive: list[int]  # how many come from each rank
    group: Any


def plan(destination: Tensor, group: Any = None) -> Plan:
    """Agree on who sends how much; `destination` (n,) says to which rank each row goes."""
    rank, ranks = ranks_of(group)
    send = destination.bincount(minlength=ranks).tolist()
    every = gather_numbers(send, group)
    return Plan(destination.argsort(stable=True), send, [each[rank] for each in every], group)


def dispatch(rows: Tensor, plan: Plan) -> Tensor:
    """(n, D) -> (m, D): the rows that came to this rank, those of rank 0 first."""
    return exchange(rows[plan.order], plan.send, plan.receive, plan.group)


def combine(results: Tensor, plan: Plan) -> Tensor:
    """(m, D) -> (n, D): the results of this rank's own rows, in their old order."""
    back = exchange(results, plan.receive, plan.send, plan.group)
    return back[plan.order.argsort()]
'''
WIDTH = 3
CASES = ("uneven", "an empty rank", "a silent rank", "one goal", "empty, one goal")
CASES += ("an idle rank", "rows (n,), uneven")


def cases(plan: Callable, dispatch: Callable, combine: Callable) -> None:
    """Rows, order, gradients and calls, with uneven, empty and silent ranks and in pairs."""
    groups = all_and_pair()
    for seed, case in enumerate(CASES):
        for group, members in groups:
            look(plan, dispatch, combine, case, 10 * seed, group, members)


def look(
    plan: Callable,
    dispatch: Callable,
    combine: Callable,
    case: str,
    seed: int,
    group: dist.ProcessGroup | None,
    members: list[int],
) -> None:
    """One journey there and back, and its gradients, while another plan has been made."""
    ranks, place = len(members), members.index(dist.get_rank())
    every = [rows_of(case, seed, each, ranks) for each in range(ranks)]
    turned = [(rows, ranks - 1 - destination) for rows, destination in every]
    rows, destination = every[place]
    right, others = came_to(place, every), came_to(place, turned)
    rows.requires_grad_()
    planned = observe(lambda d: [plan(d, group)], destination, names=("`destination`",))
    travel, other = plan(destination, group), plan(turned[place][1], group)
    gone = observe(lambda each: dispatch(each, travel), rows, names=("`rows`",))
    came = dispatch(rows, travel)
    dispatch(rows.detach(), other)
    # Whatever a rank made of its rows: it goes on, because others may wait for it.
    arrived = came if is_tensor(came) and came.shape == right.shape else right
    scale = 1.0 + place
    answer = observe(lambda each: combine(each, travel), right * scale, names=("`results`",))
    results = combine(arrived * scale, travel)
    if is_tensor(results) and results.requires_grad:
        results.backward(torch.ones_like(results))
    here = where(f"{case}, {'a pair' if group else 'all ranks'}")
    with judging():
        hint = "Rows from rank 0 come first, and each rank's rows keep their order."
        mistakes = {
            "`exchange` takes rows in the order of their ranks. Did you sort them before it?": (
                unsorted(place, every, ranks)
            ),
            "Another plan was made before you dispatched. Use the one that you are given.": others,
        }
        if is_tensor(came) and sorted(came.flatten().tolist()) == sorted(right.flatten().tolist()):
            hint = "All rows came, in another order. Is your sort stable?"
        judge(f"{here}: dispatch", gone, right, mistakes, hint, dtype=torch.float64)
        if not is_tensor(results):
            raise Wrong(f"{here}: combine returned {kind(results)}, expected a Tensor")
        factor = (1.0 + destination.double()).view(-1, *[1] * (rows.dim() - 1))
        hint = "Row i of the answer is the result of row i. What undoes a sort?"
        what = f"{here}: combine did not bring the results back in order: it"
        judge(what, answer, rows * factor, (), hint, dtype=torch.float64)
        if rows.grad is None or not torch.allclose(rows.grad, factor.expand_as(rows)):
            hint = "Do the rows travel through `exchange`? Only there gradients flow back."
            raise Wrong(f"{here}: the gradient of the rows is wrong", hint)
        expect_one_exchange(f"{here}: dispatch", gone["calls"], rows, ranks)
        expect_one_exchange(f"{here}: combine", answer["calls"], right, ranks)
        spent = sum(size for _, size in planned["calls"])
        if spent > 64 * ranks * ranks:
            hint = "The ranks only need to know how many rows come from whom."
            raise Wrong(f"{here}: plan moved {spent} bytes", hint)


def expect_one_exchange(here: str, calls: list, rows: Tensor, ranks: int) -> None:
    """Raise `Wrong` unless a rank sent its rows once, and took part even if it has none."""
    hint = "Does each row travel once, by one `exchange` that every rank calls?"
    if not calls:
        hint = f"{LONELY} Every rank calls it once."
    calls = sorted(calls, key=lambda call: call != ["all_to_all", rows.nbytes])
    if sum(size for _, size in calls[1:]) <= 16 * ranks:  # how many rows come may be asked here
        calls = calls[:1]
    expect_calls(here, calls, [[["all_to_all", rows.nbytes]], *[[]] * (ranks == 1)], hint)


def rows_of(case: str, seed: int, place: int, ranks: int) -> tuple[Tensor, Tensor]:
    """The rows of a rank, and where each goes, (n,); every rank knows all ranks'."""
    count = 4 + 3 * place
    if ("empty" in case and place == ranks - 1) or ("idle" in case and place == 0 and ranks > 1):
        count = 0
    random = torch.Generator().manual_seed(seed + place)
    destination = torch.randint(ranks, (count,), generator=random)
    if ("silent" in case or "idle" in case) and ranks > 1:  # nobody sends to the first rank
        destination = 1 + destination % (ranks - 1)
    if "one goal" in case:
        destination[:] = ranks - 1
    shape = (count,) if "(n,)" in case else (count, WIDTH)
    rows = random_values(seed + 100 + place, *shape, dtype=torch.float64)
    return rows, destination.to(rows.device)


def came_to(place: int, every: list[tuple[Tensor, Tensor]]) -> Tensor:
    """The rows that come to a rank, those of the first rank first, each rank's in their order."""
    return torch.cat([rows[destination == place] for rows, destination in every])


def unsorted(place: int, every: list[tuple[Tensor, Tensor]], ranks: int) -> Tensor:
    """What comes to a rank if nobody sorts."""
    parts = []
    for rows, destination in every:
        send = destination.bincount(minlength=ranks).tolist()
        parts.append(rows.split(send)[place])
    return torch.cat(parts)


SORTED = "rows[plan.order]"
BACK = "back[plan.order.argsort()]"

WRONG = [
    ("not sorted", SORTED, "rows", "Did you sort them"),
    ("not brought back", BACK, "back", "What undoes a sort?"),
    ("sorted twice", BACK, "back[plan.order]", "What undoes a sort?"),
    ("descending", "stable=True", "descending=True, stable=True", "dispatch"),
    ("receives what it sends", "[each[rank] for each in every]", "send", "rank"),
    (
        "the group forgotten",
        "gather_numbers(send, group)",
        "gather_numbers(send)",
        "Number of tensor splits not",
    ),
    ("no gradient", SORTED, f"{SORTED}.detach()", "gradient of the rows is wrong"),
    (
        "everything to everyone",
        f"return exchange({SORTED}",
        "everything = rows.detach().repeat(len(plan.send), 1)\n"
        "lengths = [sum(each) for each in gather_numbers(plan.send, plan.group)]\n"
        "exchange(everything, [len(rows)] * len(lengths), lengths, plan.group)\n"
        f"return exchange({SORTED}",
        "Does each row travel once",
    ),
    (
        "send and receive swapped",
        "plan.send, plan.receive",
        "plan.receive, plan.send",
        "Which list says what leaves this rank",
    ),
    (
        "no group on the way back",
        "plan.receive, plan.send, plan.group",
        "plan.receive, plan.send",
        "Does every call get `group`",
    ),
    ("no minlength", "minlength=ranks", "", "`minlength`"),
    (
        "rows of two dimensions",
        SORTED,
        "rows.gather(0, plan.order[:, None].expand_as(rows))",
        "Rows may also be (n,)",
    ),
    ("rows of two dimensions, by index", SORTED, "rows[plan.order, :]", "Rows may also be (n,)"),
    (
        "the last plan for all",
        "return Plan(",
        "plan.last = Plan(",
        "for each in every], group)",
        "for each in every], group)\nreturn plan.last",
        "return exchange(rows",
        "plan = globals()['plan'].last\nreturn exchange(rows",
        "Use the one that you are given",
    ),
    (
        "the last plan on the way back",
        "return Plan(",
        "plan.last = Plan(",
        "for each in every], group)",
        "for each in every], group)\nreturn plan.last",
        "back = exchange",
        "plan = globals()['plan'].last\nback = exchange",
        "Each call has its own plan",
    ),
    (
        "an idle rank skips",
        "return exchange(rows",
        "if not sum(plan.send) + sum(plan.receive):\n    return rows.clone()\nreturn exchange(rows",
        "A rank with nothing to send",
    ),
    (
        "an idle rank skips the way back",
        "back = exchange(",
        "if not sum(plan.send) + sum(plan.receive):\n    return results.clone()\nback = exchange(",
        "A rank with nothing to send",
    ),
    (
        "a second exchange",
        "back = exchange(",
        "exchange(results.detach(), plan.receive, plan.send, plan.group)\nback = exchange(",
        "Does each row travel once",
    ),
    (
        "clears the results",
        "return back[",
        "results.detach().zero_()\nreturn back[",
        "changed `results`",
    ),
    (
        "results by an all-gather",
        "back = exchange(results, plan.receive, plan.send, plan.group)",
        "import torch\n"
        "from torch.distributed.nn.functional import all_gather\n"
        "rank, ranks = ranks_of(plan.group)\n"
        "every = gather_numbers(plan.receive, plan.group)\n"
        "most = max(map(sum, every))\n"
        "padding = results.new_zeros(most - len(results), *results.shape[1:])\n"
        "padded = torch.cat((results, padding))\n"
        "back = all_gather(padded, plan.group) if ranks > 1 else [padded]\n"
        "parts = zip(back, every)\n"
        "back = torch.cat([part.split([*n, most - sum(n)])[rank] for part, n in parts])",
        "Does each row travel once",
    ),
    (
        "one buffer for all calls",
        "return exchange(",
        "come = exchange(",
        ", plan.send, plan.receive, plan.group)",
        ", plan.send, plan.receive, plan.group)\n"
        "kept = dispatch.__dict__.setdefault(str(come.shape), come.detach().clone())\n"
        "come.data = kept.copy_(come.detach())\n"
        "return come",
        "in the same memory",
    ),
]
RIGHT = [
    (
        "scattered back",
        BACK,
        "back.new_zeros(back.shape).index_copy(0, plan.order, back)",
    ),
    (
        "counts by an all-to-all",
        "every = gather_numbers(send, group)",
        "import torch\n"
        "came = torch.tensor(send)\n"
        "if ranks > 1:\n"
        "    torch.distributed.all_to_all_single(came, torch.tensor(send), group=group)",
        "[each[rank] for each in every]",
        "came.tolist()",
    ),
    (
        "counts when rows leave",
        "[each[rank] for each in every]",
        "[]",
        "return exchange(rows",
        "every = gather_numbers(plan.send, plan.group)\n"
        "plan.receive[:] = [each[ranks_of(plan.group)[0]] for each in every]\n"
        "return exchange(rows",
    ),
]
