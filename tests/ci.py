"""`CI=true ./run.sh test` first installs what only tests need: programs, a font, packages."""

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = {  # of Debian and Ubuntu, with the programs whose absence asks for them
    "iproute2": ("ip", "tc"),
    "chromium fonts-wqy-microhei": ("chromium",),  # the font: for terms in Chinese
    "g++ python3-dev": ("c++",),  # DeepSpeed compiles an extension
    "slurm-wlm munge": ("slurmctld", "slurmd", "sbatch", "munged"),  # a cluster on this machine
}

REQUIREMENTS = {  # a module whose absence asks for them
    "deepspeed": "requirements-deepspeed.txt",
    "sphinx_book_theme": "requirements-site.txt",
    "spmd_types": "requirements-types.txt",
}


def main() -> None:
    """Install what is missing; if that is not possible, say why and exit with status 2."""
    if missing := missing_packages():
        install_packages(missing)
    for module, file in REQUIREMENTS.items():
        if not importlib.util.find_spec(module):
            say(f"Installing {file}...")
            # Without isolation: DeepSpeed's setup.py must find the torch that is installed here.
            pip = [sys.executable, "-m", "pip", "install", "-q", "--no-build-isolation"]
            run([*pip, "-r", file])


def missing_packages() -> list[str]:
    """The packages that have a program which is not on PATH."""
    return [
        package
        for packages, programs in PACKAGES.items()
        if not all(map(shutil.which, programs))
        for package in packages.split()
    ]


def install_packages(packages: list[str]) -> None:
    """Install packages with apt-get."""
    names = " ".join(packages)
    if not shutil.which("apt-get") or os.geteuid() != 0:
        say(
            f"run.sh: cannot install {names}: that needs Debian or Ubuntu, and root. Run the tests "
            "without CI=true to skip those that need these packages."
        )
        sys.exit(2)
    say(f"Installing {names}...")
    os.environ["DEBIAN_FRONTEND"] = "noninteractive"
    run(["apt-get", "-qq", "update"])
    run(["apt-get", "-qq", "install", "--no-install-recommends", "-y", *packages])


def run(command: list[str]) -> None:
    """Run a command in the course's folder, with its output on stderr; exit if it fails."""
    status = subprocess.call(command, cwd=ROOT, stdout=sys.stderr)
    if status:
        say(f"run.sh: {command[0]} failed: fix what it reports above, then try again.")
        sys.exit(1)


def say(text: str) -> None:
    """Print to stderr at once."""
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
