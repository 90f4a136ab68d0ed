"""The table of claims."""

import pytest

from course_utils import proofs
from nbtorchrun.display import text
from nbtorchrun.formats import number


@pytest.fixture(autouse=True)
def empty(monkeypatch):
    monkeypatch.setattr(proofs, "_rows", {})


def test_a_claim_that_holds_is_kept(capsys):
    proofs.record("sums agree", on="3 ranks", worst=3.2e-16, bound=1e-10)
    proofs.record("bytes", on="N = 2, 3", worst=1.004, bound=1.02)
    proofs.table()
    assert capsys.readouterr().out == (
        "claim        measured on   worst ≤   bound\n"
        "sums agree   3 ranks       1e-15     1e-10\n"
        "bytes        N = 2, 3      1.004     1.02\n"
    )


@pytest.mark.parametrize("worst", [2e-10, float("nan"), float("inf")])
def test_a_claim_that_does_not_hold_fails(worst):
    with pytest.raises(
        AssertionError, match=r"the claim fails: sums agree \(on 3 ranks\): measured"
    ):
        proofs.record("sums agree", on="3 ranks", worst=worst, bound=1e-10)


def test_claims_are_taken_from_reports(worker, launch):
    source = (
        "from nbtorchrun.worker import rank, report\n"
        "report(loss=3)\n"
        "if rank() == 1:\n"
        "    report(claim='right', on='2 ranks', worst=0, bound=1e-10)\n"
    )
    run = launch(worker("claims.py", source))
    assert proofs.reported(run) == [proofs.Proof("right", "2 ranks", 0, 1e-10)]
    proofs.add(run)


def test_a_run_that_claims_nothing_proves_nothing(worker, launch):
    with pytest.raises(AssertionError, match="reported no claim"):
        proofs.add(launch(worker("silent.py", "pass"), nproc=1))


@pytest.mark.parametrize(
    ("worst", "bound", "shown"),
    [
        (0.05, 0.05, "< 0.05"),  # worst(..., floor=0.05) has rounded it up
        (3e-11, 1e-10, "< 1e-10"),  # and the table rounds up to a power of ten
        (1.0, 1, "< 1"),
        (0, 0, "0"),
        (0.04, 0.05, "0.04"),
        (0.06, 0.05, "0.06"),
    ],
)
def test_what_is_rounded_up_to_its_bound_is_shown_to_be_below_it(worst, bound, shown):
    assert proofs.Proof("c", "o", worst, bound).measured == shown
    (line,) = text.results([{"claim": "c", "worst": worst, "bound": bound}])  # as its rank shows it
    assert line == f"claim c   worst {shown}   bound {number(bound)}"


def test_a_claim_of_several_ranks_is_one_row_with_the_worst():
    rows = [proofs.Proof("equal", "3 ranks", worst, 1.0) for worst in (0.1, 0.7, 0.3)]
    other = proofs.Proof("equal", "4 ranks", 0.2, 1.0)
    assert proofs.worst_of_each([*rows, other]) == [rows[1], other]
    lost = proofs.Proof("equal", "3 ranks", float("nan"), 1.0)
    assert proofs.worst_of_each([rows[0], lost, rows[1]]) == [lost]
