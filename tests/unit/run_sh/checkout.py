"""A checkout of run.sh of its own, with a Python and a pip that do as each test tells them."""

import contextlib
import os
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PACKAGES = ("course_utils", "nbtorchrun", "tools", "lessons")
TOOLS = "awk bash cat chmod cksum cp df dirname head mkdir mv readlink rm sleep touch uname"

# Answers as Python, its venv and its pip do. CALLS gets a line for each call of the latter two;
# FAKE_PIP is what pip does, FAKE_CONFIG what `pip config list` does, FAKE_UV is the uv that pip
# installs (without it, pip finds none), HAS is what is installed, CHECK is what --check finds of a
# call; SHOW is a variable to show; COPIES is where the copies of the notebooks are, COPIED is what
# came of making them.
FAKE_PYTHON = f"""#!/usr/bin/env bash
case "$1 $2" in
    "-c "*) exec {shlex.quote(sys.executable)} "$@" ;;
    "-P -c") for name in "${{@:4}}"; do case " $HAS " in *" $name "*) ;; *) exit 1 ;; esac; done ;;
    "-m venv") echo venv >>"$CALLS"; mkdir -p "$3/bin"; cp "$0" "$3/bin/python" ;;
    "-m pip") case "$*" in
        *" config list") eval "${{FAKE_CONFIG:-true}}" ;;
        *" uv=="*)
            [ "${{FAKE_UV:-}}" ] || {{ echo "ERROR: no wheel of uv" >&2; exit 1; }}
            echo get-uv >>"$CALLS"
            echo "$FAKE_UV" >"${{0%/*}}/uv"; chmod +x "${{0%/*}}/uv" ;;
        *) echo pip >>"$CALLS"; eval "$FAKE_PIP" ;;
    esac ;;
    *)
        [ "$3" != --check ] || exit "${{CHECK:-0}}"
        [ "$3" != lab ] || {{ echo "$COPIES"; exit "${{COPIED:-0}}"; }}
        echo "$0 $*"; [ -z "${{SHOW:-}}" ] || echo "${{!SHOW}}"; exit "${{STATUS:-0}}" ;;
esac
"""
OLD_PYTHON = """#!/usr/bin/env bash
[ "$1" != --version ] || echo Python 3.9.2
exit 1
"""


def write_program(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


class Checkout:
    """A copy of run.sh in a folder with a blank in its name, on a PATH of its own."""

    def __init__(self, folder: Path):
        self.folder, self.root = folder, folder / "the course"
        self.bin, self.calls_file, self.tmp = folder / "bin", folder / "calls", folder / "tmp"
        for made in (self.root, self.bin, self.tmp):
            made.mkdir()
        shutil.copy(ROOT / "run.sh", self.root)
        (self.root / "requirements.txt").write_text("six==1.17.0\n")
        (self.root / "pyproject.toml").write_text("")
        (self.root / "requirements-tests.txt").write_text("pytest-xdist==3.8.0\n")
        for tool in TOOLS.split():
            (self.bin / tool).symlink_to(shutil.which(tool))
        write_program(self.bin / "python3", FAKE_PYTHON)
        write_program(self.bin / "id", "echo 1000")
        self.env = {
            "PATH": str(self.bin),
            "TMPDIR": str(self.tmp),
            "CALLS": str(self.calls_file),
            "COPIES": "/my copies",
            "HAS": "pip torch pytest xdist jupyterlab nbclient ipykernel psutil rich numpy",
        }

    def start(self, *arguments: str, **env: str) -> subprocess.Popen:
        return subprocess.Popen(
            [self.root / "run.sh", *arguments],
            env=self.env | env,
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def run(self, *arguments: str, **env: str) -> tuple[int, str, str]:
        """Its status, stdout and stderr."""
        process = self.start(*arguments, **env)
        try:
            out, err = process.communicate(timeout=50)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # all that it has left
        return process.returncode, out.strip(), err.strip()

    def calls(self) -> list[str]:
        return self.calls_file.read_text().split() if self.calls_file.exists() else []

    def use_bare_python(self) -> None:
        """Let python3 be a real one without any package, and add the course itself."""
        for name in (*PACKAGES, "notebooks"):
            (self.root / name).symlink_to(ROOT / name)
        call = f'exec {shlex.quote(sys.executable)} -S "$@"'
        write_program(self.bin / "python3", f"#!/usr/bin/env bash\n{call}\n")

    def left(self) -> set[str]:
        """What is in the checkout that was not there at first."""
        known = {"run.sh", "pyproject.toml", *PACKAGES, "notebooks"}
        known |= {"requirements.txt", "requirements-tests.txt"}
        return {path.name for path in self.root.iterdir()} - known

    @property
    def own_python(self) -> str:
        return f"{self.root}/.venv/bin/python"


def is_one_sentence(text: str) -> bool:
    return len(text.splitlines()) == 1 and text.startswith("run.sh: ") and text.endswith(".")
