"""Whether a demo takes a call that a document shows; no rank starts."""

import os
import sys
from collections.abc import Sequence
from unittest.mock import patch

from course_utils import load_worker
from tools import demos


def accept(demo: demos.Demo, arguments: Sequence[str], ranks: int) -> None:
    """Raise an InputError, or exit as the script's argparse does, if a call can't be."""
    demos.check_ranks(demo, ranks)
    demos.check_arguments(demo, arguments)
    if demo.has_options:
        started = {"WORLD_SIZE": str(ranks)}
        with patch.dict(os.environ, started), patch.object(sys, "argv", ["x.py", *arguments]):
            load_worker(demo.main.file).parse_arguments()
