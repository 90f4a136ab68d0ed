"""The table of claims."""

import pytest

from course_utils.notebook import proofs


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
        "from course_utils.worker import rank, report\n"
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
