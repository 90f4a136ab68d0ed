"""Notebook 13, many machines: a stop, reads of a reshard, the cost of failures, damaged files."""

import hashlib
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from course_utils.checking.calls import called
from course_utils.checking.compare import Wrong, expect
from course_utils.checking.failures import lonely
from course_utils.checking.probes import probe_each
from course_utils.checking.registry import exercise

LONELY = lonely("Does every rank call the same collective, whatever its own wish is?")
FILES = {"a.bin": b"step 20\n" + bytes(99), "b.bin": b"step 20\n" + b"b" * 99, "c.bin": b""}
DAMAGES = {  # what is written over a file, or None where it is removed; and the hint
    "nothing is damaged": ({}, "All three are as the manifest says; an empty one may be right."),
    "b.bin is cut short": ({"b.bin": FILES["b.bin"][:-1]}, "Compare each file with its entry."),
    "b.bin is missing": ({"b.bin": None}, "A file that is not there is damaged, too."),
    "one bit of a.bin is flipped": (
        {"a.bin": b"step 20\n" + bytes(50) + b"\x01" + bytes(48)},
        "Its size is right. What tells you that its bytes are not?",
    ),
    "c.bin has a byte too many": ({"c.bin": b"c"}, "A file may also be too long."),
    "a.bin holds what belongs in b.bin": (
        {"a.bin": FILES["b.bin"]},
        "Those bytes are sound, but not here. Whose hash do you compare with?",
    ),
    "a.bin is missing and b.bin is empty": (
        {"a.bin": None, "b.bin": b""},
        "Name every damaged file, in the order of the manifest.",
    ),
    "a file of an older save lies beside them": (
        {"old.bin": b"step 15\n"},
        "A file that the manifest does not name cannot be damaged.",
    ),
}


@exercise("13.1", "agree on a stop", file="exercise_13_1.py")
def check_13_1() -> list[str]:
    """The answer on every rank, for every set of ranks that wish to stop, and the message."""
    probe_each("probe_13_1.py", (3, 2, 4, 1), hint=LONELY)
    return [
        "1 to 4 ranks and a group of two, whoever wishes to stop: all ranks give the same answer",
        "one collective of a few bytes, whatever the rank itself wishes",
    ]


@exercise("13.2", "what to read", file="exercise_13_2.py")
def check_13_2() -> list[str]:
    """Every range of every cut of 0 to 11 values, and hand-made cuts with empty pieces."""
    probe_each("probe_13_2.py", (1,))
    return [
        "0 to 11 values, saved by 1 to 5 ranks and loaded by 1 to 5: every value is read once,",
        "in order, from the piece that has it; empty pieces and empty ranges read nothing",
    ]


@exercise("13.3", "what failures cost")
def check_13_3(lost: Callable) -> list[str]:
    """The share of time lost, for several intervals, saves, restarts and failure rates."""
    for interval, save, restart, between in (
        (1000.0, 60.0, 600.0, 11_000.0),
        (600.0, 30.0, 0.0, 7200.0),
        (3600.0, 0.0, 300.0, 86_400.0),
        (500.0, 20.0, 100.0, 1e12),
        (7.0, 3.0, 2.0, 90.0),
    ):
        call = f"lost({interval:g}, {save:g}, {restart:g}, {between:g})"
        got = called(call, lost, interval, save, restart, between)
        right = save / interval + (interval / 2 + restart) / between
        mistakes = {
            "On average a failure comes in the middle of an interval, not at its end.": save
            / interval
            + (interval + restart) / between,
            "After a failure you also have to restart.": save / interval + interval / 2 / between,
            "You left out the saves. How many seconds of saving per second of training?": (
                interval / 2 + restart
            )
            / between,
            "You left out the failures.": save / interval,
            "That is the time that is left. How much is lost?": 1 - right,
            "That is in percent: return a share.": 100 * right,
            "A restart is needed once per failure, not once per interval.": (save + restart)
            / interval
            + interval / 2 / between,
            "Those are seconds lost per interval. How many per second of training?": right
            * interval,
        }
        hint = "Add one save per interval, and per failure half an interval and a restart."
        expect(f"{call} returned", got, right, mistakes, hint, tolerance=1e-6)
    return ["the share of time lost to saves, lost work and restarts, for five sets of numbers"]


@exercise("13.4", "files that a manifest refuses")
def check_13_4(damaged: Callable) -> list[str]:
    """Sound, torn, changed, swapped, too long, empty and missing files; and one too many."""
    for case, (changes, hint) in DAMAGES.items():
        with TemporaryDirectory() as place:
            folder = Path(place)
            entries = [_written(folder / name, data) for name, data in FILES.items()]
            for name, data in changes.items():
                if data is None:
                    (folder / name).unlink()
                else:
                    (folder / name).write_bytes(data)
            call = f"damaged(folder, entries), where {case},"
            got = called(call, damaged, folder, entries, hint=hint)
        right = [name for name in FILES if name in changes]
        if isinstance(got, bool) or not isinstance(got, list | tuple):
            raise Wrong(f"{call} returned {got!r}", "Return a list with the names of the files.")
        if any(not isinstance(name, str) for name in got):
            said = f"{call} returned {list(got)}"
            raise Wrong(said, "The names of the files, as the manifest has them: strings.")
        if list(got) != right:
            raise Wrong(f"{call} returned {list(got)}, expected {right}", hint)
    return [
        "a sound checkpoint, and files that are cut short, missing, changed by one bit, too long,",
        "swapped or empty: each is named, in order, and a file of an older save is not",
    ]


def _written(path: Path, data: bytes) -> dict[str, Any]:
    """Write a file; its entry in a manifest."""
    path.write_bytes(data)
    sha256 = hashlib.sha256(data).hexdigest()
    return {"file": path.name, "bytes": len(data), "sha256": sha256}
