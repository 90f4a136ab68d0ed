"""`./run.sh clean`: removes what runs left behind, and keeps what a student has written."""

import contextlib
import shutil
from collections import defaultdict
from datetime import datetime
from itertools import count
from pathlib import Path

from course_utils import answers, cells, exercises, paths
from nbtorchrun.errors import InputError

KEPT = "workers-kept-"  # earlier calls kept files in folders whose names begin like this


def clean(everything: bool = False) -> None:
    """Remove `workers/`, run folders and caches, and say so.

    Answers that have passed stay in `workers/`, with the note about them. Other files there that
    differ from what the saved notebooks write move to a dated folder.

    Args:
        everything: delete all of those too, and the folders of earlier calls.

    Raises:
        InputError: a notebook cannot be read, so nobody knows what it writes, or COURSE_HOME is
            the user's home folder; nothing was removed.
    """
    home, root = paths.home(), paths.ROOT
    if home == Path.home().resolve():
        raise InputError(
            f"COURSE_HOME is your home folder, so {home / 'workers'} may hold files that are not "
            "the course's: remove by hand what you no longer need"
        )
    removed = [home / ".runs", root / ".pytest_cache", root / ".ruff_cache"]
    folders = (
        "course_utils",
        "nbtorchrun",
        "tools",
        "lessons",
        "tests",
        "benchmarks",
        "docs",
        "notebooks",
    )
    for folder in folders:
        for cache in ("__pycache__", ".ipynb_checkpoints"):
            removed += (root / folder).rglob(cache)
    workers = home / "workers"
    if everything:
        removed += [workers, *home.glob(f"{KEPT}*")]
    else:
        keep_what_the_student_wrote(workers)
    for path in removed:
        shutil.rmtree(path, ignore_errors=True)
    print("removed the course's own worker files, run folders and caches")


def keep_what_the_student_wrote(workers: Path) -> None:
    """Remove what else is in `workers`: what has passed stays, what was changed moves aside."""
    passed = answers.passed()
    stays = {workers / answers.file_of(number) for number in passed}
    if changed := [path for path in changed_files(workers) if path not in stays]:
        folder = move_aside(changed, workers)
        files = "file" if len(changed) == 1 else "files"
        print(f"moved {len(changed)} {files} that you changed in workers/ to {folder}")
    if not passed:
        shutil.rmtree(workers, ignore_errors=True)
        return
    stays.add(workers / answers.PASSED)
    for path in [*workers.rglob("*")]:
        if path not in stays and not path.is_dir():
            path.unlink()
    for path in sorted(workers.rglob("*/"), reverse=True):  # what is in a folder comes first
        with contextlib.suppress(OSError):  # it is not empty
            path.rmdir()
    which = ", ".join(sorted(passed))
    print(f"left your answers that have passed in workers/: {which} (--all deletes them, too)")


def changed_files(workers: Path) -> list[Path]:
    """The files in `workers` that the saved notebooks do not write as they are now.

    Caches and the course's own notes, whose names begin with a dot, do not count.
    """
    known, changed = texts_of_cells(), []
    for path in sorted(workers.rglob("*")):
        name = path.relative_to(workers)
        skipped = any(part.startswith((".", "__pycache__")) for part in name.parts)
        if path.is_file() and not skipped and path.read_bytes() not in known[str(name)]:
            changed.append(path)
    return changed


def texts_of_cells() -> defaultdict[str, set[bytes]]:
    """Every text that the saved notebooks give to each worker file, cell after cell.

    With our answers to the exercises, and with the student's answers that have passed.
    """
    known = defaultdict(set)
    for passed in (False, True):
        texts: dict[str, str] = {}
        for cell in cells.cells():
            ours = cells.file_text(exercises.find(cell.ours).ours) if cell.ours else cell.text
            text = cell.text if passed else ours
            begun = cell.append and cell.file in texts
            texts[cell.file] = texts[cell.file] + cells.GAP + text if begun else text
            known[cell.file].add(texts[cell.file].encode())
    return known


def move_aside(files: list[Path], workers: Path) -> Path:
    """Move files of `workers` to a new dated folder beside it; return that folder."""
    dated = f"{KEPT}{datetime.now():%Y-%m-%d-%H%M}"
    names = (dated if number == 1 else f"{dated}-{number}" for number in count(1))
    folder = next(path for name in names if not (path := workers.parent / name).exists())
    for file in files:
        target = folder / file.relative_to(workers)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(file, target)
    return folder
