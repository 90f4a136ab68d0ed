"""A rank's stack as a card shows it: the student's own calls first."""

from pathlib import Path

from nbtorchrun import settings
from nbtorchrun.diagnosis.stacks import Frame, frames


def shown(dump: str) -> str:
    """What `faulthandler` wrote of the main thread: the student's calls, then those inside torch.

    The innermost call comes first in both parts. A dump in which nothing is found is left as it is.
    """
    found = frames(dump)
    own = [at for at, frame in enumerate(found) if settings.is_users(frame.file)]
    if not own:
        return dump.strip()
    lines = [_line(frame) for frame in found[own[0] :]]
    inside = [_line(frame) for frame in found[: own[0]]]
    return "\n".join([*lines, *(["in which it had called", *inside] if inside else [])])


def _line(frame: Frame) -> str:
    path = Path(frame.file)
    name = settings.shown(path) if settings.is_users(frame.file) else "/".join(path.parts[-2:])
    return f"  {name}, line {frame.line}, in {frame.function}"
