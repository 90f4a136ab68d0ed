"""Where the course writes, and what it says where it cannot."""

import os
import stat
import subprocess
import sys

import pytest

from course_utils import notes, paths
from course_utils.files import write
from nbtorchrun import settings
from nbtorchrun.errors import InputError

root_only = pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as another user")


@pytest.fixture
def home(tmp_path, monkeypatch):
    """An empty home for the course."""
    monkeypatch.setenv("COURSE_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def test_a_tilde_is_the_user_s_home(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("COURSE_HOME", "~/course")
    assert paths.home() == tmp_path / "course"


@pytest.mark.parametrize("chosen", ["/proc/course", "/etc/passwd", "/dev/full"])
def test_a_home_that_cannot_be_made_is_one_sentence(monkeypatch, chosen):
    monkeypatch.setenv("COURSE_HOME", chosen)
    with pytest.raises(
        InputError, match=rf"^cannot write to {chosen} \([\w ]+\): make room"
    ) as caught:
        write("one.py", "x = 1")
    assert "\n" not in str(caught.value)


def test_a_disk_that_is_full_is_one_sentence_and_the_file_stays(home, monkeypatch):
    write("one.py", "x = 1")

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pathlib.Path.write_bytes", full)
    with pytest.raises(InputError, match=r"No space left on device\): make room there"):
        write("one.py", "x = 2")
    assert (home / "workers" / "one.py").read_text() == "x = 1\n"


def test_runs_are_private(home):
    home.mkdir()
    (home / ".runs").mkdir(mode=0o777)
    (home / ".runs").chmod(0o777)
    assert stat.S_IMODE(settings.runs().stat().st_mode) == 0o700


@root_only
def test_the_runs_folder_of_someone_else_is_refused(home, monkeypatch):
    home.mkdir()
    (home / ".runs").mkdir()
    monkeypatch.setattr("os.getuid", lambda: 1000)
    with pytest.raises(InputError, match="belongs to another user"):
        settings.runs()


def test_a_folder_that_is_gone_is_one_sentence(home, tmp_path):
    ask = (
        "import os, sys\n"
        "from pathlib import Path\n"
        "from course_utils import launch\n"
        "from course_utils.files import write\n"
        "write('one.py', 'x = 1')\n"
        "os.rmdir(os.getcwd())\n"
        "try:\n    launch('one.py')\nexcept ValueError as error:\n    print(error)\n"
    )
    (tmp_path / "gone").mkdir()
    done = subprocess.run(
        [sys.executable, "-c", ask],
        cwd=tmp_path / "gone",
        env=os.environ | {"PYTHONPATH": str(paths.ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout.startswith("the folder that this process works in has been deleted"), done


def test_notes_of_kernels_that_write_at_once_are_all_kept(home):
    note = (
        "from course_utils import notes\n"
        "import sys\n"
        "for number in range(50):\n"
        "    with notes.changing('.some.json') as noted:\n"
        "        noted[f'{sys.argv[1]} {number}'] = 1\n"
    )
    command = [sys.executable, "-c", note]
    environ = os.environ | {"PYTHONPATH": str(paths.ROOT)}
    kernels = [subprocess.Popen([*command, str(kernel)], env=environ) for kernel in range(4)]
    assert [kernel.wait(60) for kernel in kernels] == [0] * 4
    assert len(notes.read(".some.json")) == 200
