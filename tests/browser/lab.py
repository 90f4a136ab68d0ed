"""A JupyterLab for tests: in a folder of its own, on the loopback, and gone with all it started."""

import contextlib
import json
import os
import shutil
import sys
import time
import urllib.request
from collections.abc import Iterable
from pathlib import Path

import nbformat
import psutil

from course_utils import paths
from tests import kernel_ports
from tools.execute import KERNEL

START_TIMEOUT = 120  # seconds; importing it on loaded cores takes a while
END_TIMEOUT = 30  # seconds
NO_NEWS = {"fetchNews": "false", "checkForUpdates": False}  # nothing is asked of the network


class Lab:
    """A running JupyterLab.

    Args:
        folder: an empty folder, for its notebooks, settings and log.

    Attributes:
        url: of its first page, which ends with a slash.
        token: what opens it.
    """

    def __init__(self, folder: Path):
        self.notebooks = folder / "notebooks"
        self.notebooks.mkdir()
        settings = folder / "jupyterlab_settings_dir" / "@jupyterlab" / "apputils-extension"
        settings.mkdir(parents=True)
        (settings / "notification.jupyterlab-settings").write_text(json.dumps(NO_NEWS))
        self._log = open(folder / "jupyterlab.log", "w+")  # noqa: SIM115
        self._process = psutil.Popen(
            [
                *(sys.executable, kernel_ports.__file__, "--no-browser", "--allow-root"),
                *("--ServerApp.ip=127.0.0.1", "--ServerApp.port=0"),
                *(f"--ServerApp.root_dir={self.notebooks}", "--LabApp.expose_app_in_browser=True"),
            ],
            cwd=folder,
            env=environment(folder),
            stdout=self._log,
            stderr=self._log,
            start_new_session=True,
        )
        server = folder / "jupyter_runtime_dir" / f"jpserver-{self._process.pid}.json"
        self.url, self.token = self._wait_for(server)

    def add(self, path: Path) -> str:
        """Copy a notebook into the folder of this JupyterLab; return its name there."""
        shutil.copy(path, self.notebooks)
        return path.name

    def write(self, name: str, cells: Iterable[str]) -> str:
        """Write a notebook with these code cells; return its name."""
        book = nbformat.v4.new_notebook(
            cells=list(map(nbformat.v4.new_code_cell, cells)), metadata={"kernelspec": KERNEL}
        )
        nbformat.write(book, self.notebooks / name)
        return name

    def processes(self) -> set[psutil.Process]:
        """Everything that runs below this JupyterLab: kernels, their helpers, ranks."""
        return set(self._process.children(recursive=True))

    def shut_kernels_down(self) -> list[psutil.Process]:
        """End all kernels; what is left of them is killed, and returned."""
        below = self.processes()
        for kernel in self._ask("GET", "api/kernels"):
            self._ask("DELETE", f"api/kernels/{kernel['id']}")
        _, alive = psutil.wait_procs(below, END_TIMEOUT)
        for process in alive:
            process.kill()
        return alive

    def close(self) -> None:
        """End it, and all below it."""
        everything = [self._process, *self.processes()]
        self._process.terminate()
        _, alive = psutil.wait_procs(everything, END_TIMEOUT)
        for process in alive:
            process.kill()
        self._log.close()

    def _wait_for(self, server: Path) -> tuple[str, str]:
        """The address and token that JupyterLab wrote into a file when it was ready."""
        deadline = time.monotonic() + START_TIMEOUT
        while time.monotonic() < deadline and self._process.is_running():
            with contextlib.suppress(OSError, ValueError):  # not there yet, or not whole
                told = json.loads(server.read_text())
                self.url, self.token = told["url"], told["token"]
                self._ask("GET", "api/status")
                return self.url, self.token
            time.sleep(0.1)
        self.close()
        raise RuntimeError(f"JupyterLab did not start: {Path(self._log.name).read_text()[-2000:]}")

    def _ask(self, method: str, path: str) -> list | dict | None:
        """Call Jupyter's REST interface."""
        request = urllib.request.Request(
            self.url + path, method=method, headers={"Authorization": f"token {self.token}"}
        )
        with urllib.request.urlopen(request, timeout=END_TIMEOUT) as answer:
            return json.loads(answer.read() or "null")


def environment(folder: Path) -> dict[str, str]:
    """The variables of a JupyterLab that shares nothing with the user's, nor with other tests."""
    own = "CONFIG_DIR DATA_DIR RUNTIME_DIR".split()
    names = [f"JUPYTER_{name}" for name in own]
    names += ["JUPYTERLAB_SETTINGS_DIR", "JUPYTERLAB_WORKSPACES_DIR", "IPYTHONDIR", "COURSE_HOME"]
    made = os.environ | {name: str(folder / name.lower()) for name in names}
    made["JUPYTER_PATH"] = str(paths.ROOT / "tools/jupyter")  # as run.sh does
    made.pop("PYTEST_CURRENT_TEST", None)  # or nothing would be shown live
    return made
