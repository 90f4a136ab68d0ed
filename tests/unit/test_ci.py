"""What `CI=true ./run.sh test` installs before the tests."""

import importlib.util
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

from tests import ci


@pytest.fixture
def machine(monkeypatch):
    """A machine whose programs, modules and user a test chooses; `calls` is what was run."""
    programs = {"ip", "tc", "chromium", "c++", "apt-get"}
    programs |= {"slurmctld", "slurmd", "sbatch", "munged"}
    machine = SimpleNamespace(
        programs=programs, modules=set(ci.REQUIREMENTS), user=0, status=0, calls=[]
    )

    def call(command, **options):
        machine.calls.append(command)
        return machine.status

    monkeypatch.setattr(ci.shutil, "which", lambda name: name if name in machine.programs else None)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: name in machine.modules or None)
    monkeypatch.setattr(os, "geteuid", lambda: machine.user)
    monkeypatch.setattr(subprocess, "call", call)
    monkeypatch.delenv("DEBIAN_FRONTEND", raising=False)
    return machine


def test_nothing_is_installed_where_all_is_there(machine, capsys):
    ci.main()
    assert not machine.calls
    assert not capsys.readouterr().err


@pytest.mark.parametrize(
    ("program", "packages"),
    [
        ("tc", ["iproute2"]),
        ("chromium", ["chromium", "fonts-wqy-microhei"]),
        ("c++", ["g++", "python3-dev"]),
        ("slurmd", ["slurm-wlm", "munge"]),
    ],
)
def test_a_missing_program_is_installed(machine, program, packages):
    machine.programs -= {program}
    ci.main()
    update, install = machine.calls
    assert update[0] == install[0] == "apt-get"
    assert install[-len(packages) - 1 :] == ["-y", *packages]


@pytest.mark.parametrize(
    ("module", "file"),
    [
        ("deepspeed", "requirements-deepspeed.txt"),
        ("sphinx_book_theme", "requirements-site.txt"),
        ("spmd_types", "requirements-types.txt"),
    ],
)
def test_a_missing_module_is_installed_for_this_python(machine, module, file):
    machine.modules -= {module}
    ci.main()
    (pip,) = machine.calls
    assert pip[:4] == [sys.executable, "-m", "pip", "install"]
    assert pip[-2:] == ["-r", file]


@pytest.mark.parametrize("lacks", ["root", "apt-get"])
def test_what_cannot_be_installed_is_named_in_one_sentence(machine, lacks, capsys):
    machine.programs -= {"ip", lacks}
    machine.user = 1000 if lacks == "root" else 0
    with pytest.raises(SystemExit, match="2"):
        ci.main()
    assert not machine.calls
    said = capsys.readouterr().err
    assert said.startswith("run.sh: cannot install iproute2: ")
    assert len(said.splitlines()) == 1


def test_an_installation_that_fails_ends_the_tests(machine):
    machine.programs -= {"ip"}
    machine.status = 100
    with pytest.raises(SystemExit, match="1"):
        ci.main()
    assert len(machine.calls) == 1
