"""Each claim that a script reports fails under a fault that is put in from outside.

`docs/claims.md` lists the claims, each with the fault that it catches. The tests run each script
with the faults of its claims. After a change of claims, `./run.sh test tests/claims
--write-claims=PART` looks for the faults of the scripts with PART in their names, and writes the
table.
"""

import math

import pytest

from course_utils import cells, paths
from nbtorchrun.formats import number
from tests.claims import scripts

TABLE = paths.ROOT / "docs" / "claims.md"
# of one process, too
ALONE = ("wrong_gradients", "joined_wrong", "wrong_rule", "unmasked", "blind", "not_trained")
FAULTS = (
    *("not_a_number", "one_percent", "not_divided", "dropped", "counted_twice"),
    *("not_broadcast", "received_wrong"),
    *("wrong_gradients", "joined_wrong", "sample_twice", "own_step", "not_trained"),
    *("sent_twice", "never_freed", "never_forgets", "not_restored", "not_sharded", "renumbered"),
    *("held_back", "slow_messages", "oversleeps", "fast_clock"),
)
NONE = "—"  # no fault was found: the claim cannot stay
ROOM = 10  # a bound is at least so many times what is measured,
EFFECT = 100  # and what a fault gives is at least so many times the bound
# Bounds that are nearer, and why.
NEAR = {
    "held-out digits not recognised": "a share of 360 digits, not a rounding error",
    "error of a sum, over its bound": "the bound is a theorem's, and some sum comes near it",
    "bytes on the wire, difference from the formula": "the packets' headers, about 1 %",
    "bytes held by fully_shard against 16/N, N = 3": "the bound is computed: what it pads",
    "bytes the collectives must move: 2, 2, 2, 3, 3 units, N = 3": "computed: what is padded",
    "each rank holds P/t parameters": "norms and biases are on every rank: 0.24 %",
    "an injected delay, found by lateness: relative error": "shown as its bound: a time",
    "time of early ranks in all_reduce that is not waiting": "shown as its bound: a time",
    "error of aligned clocks, in halves of the shortest round trip": "shown as its bound",
    "causes that the audit does not name, or false alarms": "a count of ten reports",
    "memory per rank, relative to the planner": "a model of the memory, to 5 %",
}
# Scripts of several ranks whose claims are about no tensor that is sent, and what they are about.
# In all others some claim fails if every larger message is not-a-number.
OF_NO_TENSOR = {
    "prove_ranks.py": "a message of three ones",
    "prove_overlap.py": "when a message is back",
    "prove_bytes.py": "bytes",
    "prove_bytes_alive.py": "bytes in memory",
    "prove_volume.py": "bytes",
    "count_block.py": "the number of calls",
    "shard_a_model.py": "parameters on each rank, before any message",
    "prove_evaluation.py": "two counts",
    "prove_epoch.py": "which samples a rank gets",
    "prove_distributed_evaluation.py": "two counts",
    "watch_memory.py": "tensors in memory",
    "find_straggler.py": "times",
    "align_clocks.py": "times",
    "count_traffic.py": "bytes",
    "memory_of_ranks.py": "bytes in memory",
    "prove_bytes_sent.py": "bytes",
}
HEAD = """# What the course claims

Each claim that a script reports to its notebook, with the largest value that it allows (its
bound), what it measured, and a fault that makes it fail. The faults are put in from outside
(`tests/claims/messages.py` and `computing.py`); scripts stay as you see them. `tests/claims` runs
each script with its fault, and `./run.sh test tests/claims --write-claims=` writes this table. A
bound is at least ten times what is measured, and at most a hundredth of what the fault gives;
`test_claims.py` names the exceptions, and why each is one. Claims that a notebook's own cells
record are in the notebooks' tables.

| notebook | script | claim | bound | measured | fails with |
| --- | --- | --- | --- | --- | --- |
"""
STARTS = scripts.starts()


def rows() -> list[list[str]]:
    """The table: notebook, script, claim, bound, measured and fault of each claim."""
    lines = TABLE.read_text().splitlines() if TABLE.exists() else []
    fields = [line.strip("| ").split(" | ") for line in lines if line.startswith("| ")]
    return [row for row in fields if len(row) == 6 and row[0] not in ("notebook", "---")]


def fails(found: tuple[float, float]) -> bool:
    """Whether a claim does not hold; not-a-number supports nothing."""
    worst, bound = found
    return math.isnan(worst) or worst > bound


def pairs() -> list[tuple[scripts.Start, str]]:
    """Each script with each fault that the table names for it."""
    named = {(row[1], row[5]) for row in rows()}
    return [
        (start, fault)
        for start in STARTS
        for fault in sorted({f for s, f in named if s == start.file})
    ]


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("start", "fault"), pairs(), ids=str)
def test_a_claim_fails_with_its_fault(start, fault):
    run = start.run(fault)
    assert {r["put_in"] for r in run.reports if "put_in" in r} == {fault}, run.verdict
    found = scripts.claims_of(run)
    assert found or not run.ok
    for _, script, claim, _, _, named in rows():
        if script == start.file and named == fault:
            assert claim not in found or fails(found[claim]), f"{claim} holds with {fault}"
            worst, bound = found.get(claim, (math.inf, 0))
            assert not worst < EFFECT * bound or claim in NEAR, f"{claim}: only {worst}"
    assert any(map(fails, found.values())) or not found


def of_tensors() -> list[scripts.Start]:
    """The scripts whose ranks send tensors, but those that the table has with not-a-number."""
    tested = {row[1] for row in rows() if row[5] == "not_a_number"} | OF_NO_TENSOR.keys()
    return [start for start in STARTS if start.nproc > 1 and start.file not in tested]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("start", of_tensors(), ids=str)
def test_no_claims_hold_while_messages_are_not_a_number(start):
    run = start.run("not_a_number")
    found = scripts.claims_of(run)
    assert any(map(fails, found.values())) if found else not run.ok, found


def test_what_is_of_no_tensor_is_a_script_of_several_ranks():
    assert OF_NO_TENSOR.keys() <= {start.file for start in STARTS if start.nproc > 1}


def test_the_table_has_every_script_that_reports_claims():
    assert {row[1] for row in rows()} == {start.file for start in STARTS}


def test_every_claim_bears_the_name_that_its_notebook_shows():
    """Or a row could keep an old name, and the claim that is gone would count as failing."""
    for notebook, _, claim, *_ in rows():
        (path,) = paths.NOTEBOOKS.glob(f"{notebook}_*.ipynb")
        outputs = [o for cell in cells.read(path)["cells"] for o in cell.get("outputs", ())]
        shown = " ".join("".join(output.get("text", "")) for output in outputs)
        assert " ".join(claim.split()) in " ".join(shown.split()), claim


def test_every_claim_has_a_fault():
    assert not [row[2] for row in rows() if row[5] not in {*ALONE, *FAULTS}]


def test_every_bound_has_room_or_a_reason():
    near = {row[2] for row in rows() if float(row[4]) and float(row[3]) < ROOM * float(row[4])}
    assert near == NEAR.keys()


def write_table(only: str) -> None:
    """Look for a fault that makes each claim fail, and write the table.

    Args:
        only: scripts with this in their names; the rows of the others stay.
    """
    old = rows()
    known = {(row[1], row[2]): row[5] for row in old}
    lines = []
    for start in STARTS:
        if only not in start.file:
            lines += ["| " + " | ".join(row) + " |\n" for row in old if row[1] == start.file]
            continue
        measured = scripts.claims_of(start.run())
        caught = dict.fromkeys(measured, NONE)
        tried = FAULTS if start.nproc > 1 else ALONE
        first = [fault for claim in measured if (fault := known.get((start.file, claim))) in tried]
        for fault in dict.fromkeys([*first, *tried]):
            if NONE not in caught.values():
                break
            found = scripts.claims_of(start.run(fault))
            for claim, before in caught.items():
                if before == NONE and claim in found and fails(found[claim]):
                    caught[claim] = fault
        for claim, (worst, bound) in measured.items():
            shown = [start.notebook[:2], start.file, claim, number(bound), number(worst)]
            lines.append("| " + " | ".join([*shown, caught[claim]]) + " |\n")
            print(lines[-1], end="", flush=True)
    TABLE.write_text(HEAD + "".join(lines))


@pytest.mark.timeout(3600)
def test_write_the_table(request):
    only = request.config.getoption("--write-claims")
    if only is None:
        pytest.skip("--write-claims=PART looks for faults of scripts anew, writes docs/claims.md")
    write_table(only)
