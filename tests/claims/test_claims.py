"""Each claim that a script reports fails under a fault that is put in from outside.

`docs/claims.md` lists the claims, each with the fault that it catches. The tests run each script
with the faults of its claims. After a change of claims, `./run.sh test tests/claims
--write-claims=PART` looks for the faults of the scripts with PART in their names, and writes the
table.
"""

import math

import pytest

from course_utils import paths
from course_utils.formats import number
from tests.claims import scripts

TABLE = paths.ROOT / "docs" / "claims.md"
# of one process, too
ALONE = ("wrong_gradients", "joined_wrong", "wrong_rule", "unmasked", "blind", "not_trained")
FAULTS = (
    *("not_a_number", "one_percent", "not_divided", "dropped", "counted_twice"),
    *("not_broadcast", "received_wrong"),
    *("wrong_gradients", "joined_wrong", "sample_twice", "own_step", "not_trained"),
    *("sent_twice", "never_freed"),
)
NONE = "—"  # no fault from outside touches it
HEAD = """# What the course claims

Each claim that a script reports to its notebook, with the largest value that it allows (its
bound), what it measured, and a fault that makes it fail. The faults are put in from outside
(`tests/claims/faulty.py`); scripts stay as you see them. `tests/claims` runs each script with its
fault, and `./run.sh test tests/claims --write-claims=` writes this table. Where it says "—", the
claim is about a mechanism that no fault of ours reaches, and the script has a planted mistake of
its own, or the notebook says what would break it. Claims that a notebook's own cells record are in
the notebooks' tables.

| notebook | script | claim | bound | measured | fails with |
| --- | --- | --- | --- | --- | --- |
"""
STARTS = scripts.starts()


def rows() -> list[list[str]]:
    """The table: notebook, script, claim, bound, measured and fault of each claim."""
    lines = TABLE.read_text().splitlines() if TABLE.exists() else []
    cells = [line.strip("| ").split(" | ") for line in lines if line.startswith("| ")]
    return [row for row in cells if len(row) == 6 and row[0] not in ("notebook", "---")]


def fails(found: tuple[float, float]) -> bool:
    """Whether a claim does not hold; not-a-number supports nothing."""
    worst, bound = found
    return math.isnan(worst) or worst > bound


def pairs() -> list[tuple[scripts.Start, str]]:
    """Each script with each fault that the table names for it."""
    named = {(row[1], row[5]) for row in rows() if row[5] != NONE}
    return [
        (start, fault)
        for start in STARTS
        for fault in sorted({f for s, f in named if s == start.file})
    ]


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("start", "fault"), pairs(), ids=str)
def test_a_claim_fails_with_its_fault(start, fault):
    found = scripts.claims_of(start.run(fault))
    for _, script, claim, _, _, named in rows():
        if script == start.file and named == fault:
            assert claim not in found or fails(found[claim]), f"{claim} holds with {fault}"
    assert any(map(fails, found.values())) or not found


def test_the_table_has_every_script_that_reports_claims():
    assert {row[1] for row in rows()} == {start.file for start in STARTS}


def test_nearly_every_claim_has_a_fault():
    untouched = [row[2] for row in rows() if row[5] == NONE]
    assert len(untouched) <= 0.15 * len(rows()), untouched


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
