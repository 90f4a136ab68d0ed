"""Kernels as on a fresh account: what they print goes into the course, or is compared with it."""

import importlib.util
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

OWN = ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR")  # profiles, settings, kernels
DROPPED = ("JUPYTER_PATH", "JUPYTER_CONFIG_PATH", "PYTHONSTARTUP")  # kernels run the last, too


@contextmanager
def without_the_users_settings() -> Iterator[None]:
    """Start kernels that know no profile of IPython, and no settings of Jupyter and Matplotlib."""
    with tempfile.TemporaryDirectory(prefix="course-jupyter-") as folder:
        kept = dict(os.environ)
        os.environ.update({name: os.path.join(folder, name.lower()) for name in OWN})
        if matplotlib := importlib.util.find_spec("matplotlib"):
            # Its own file. Another MPLCONFIGDIR would let it look through all fonts again.
            own = Path(matplotlib.origin).parent / "mpl-data" / "matplotlibrc"
            os.environ["MATPLOTLIBRC"] = str(own)
        for name in DROPPED:
            os.environ.pop(name, None)
        try:
            yield
        finally:
            for name in (*OWN, *DROPPED, "MATPLOTLIBRC"):
                os.environ.pop(name, None)
                os.environ.update({name: kept[name]} if name in kept else {})
