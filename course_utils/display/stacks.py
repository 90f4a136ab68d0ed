"""A rank's stack as a card shows it: the student's own calls first."""

import re
from pathlib import Path

from course_utils.diagnosis.calls import is_students

OUTSIDE = "/course_utils/worker/bootstrap.py"  # from here on, it is how the rank was started


def shown(dump: str) -> str:
    """What `faulthandler` wrote of the main thread: the student's calls, then those inside torch.

    The innermost call comes first in both parts. A dump in which nothing is found is left as it is.
    """
    thread = dump.partition("Current thread")[2].partition("\n\n")[0]
    found = re.findall(r'File "(.+?)", line (\d+) in (\S+)', thread)
    starts = [at for at, (file, _, _) in enumerate(found) if file.endswith(OUTSIDE)]
    frames = found[: starts[0] if starts else None]
    own = [at for at, (file, _, _) in enumerate(frames) if is_students(file)]
    if not own:
        return dump.strip()
    lines = [_line(*frame) for frame in frames[own[0] :] if "/course_utils/" not in frame[0]]
    inside = [_line(*frame) for frame in frames[: own[0]] if "/course_utils/" not in frame[0]]
    return "\n".join([*lines, *(["in which it had called", *inside] if inside else [])])


def _line(file: str, line: str, function: str) -> str:
    name = f"workers/{Path(file).name}" if is_students(file) else "/".join(Path(file).parts[-2:])
    return f"  {name}, line {line}, in {function}"
