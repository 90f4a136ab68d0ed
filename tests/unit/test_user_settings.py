"""The user's own settings of IPython, Jupyter and Matplotlib change no notebook of the course."""

import json
import os
import subprocess
import sys

import nbformat
import pytest

from course_utils import paths
from tools.execute import execute

CELL = "import matplotlib.pyplot as plt\n1 + 1\nplt.rcParams['figure.dpi']"
SHOWN = "100.0"
CONFIG = "c.InteractiveShell.ast_node_interactivity = 'all'\n"
PRINTS = "print('from the user')\n"


@pytest.fixture
def user(tmp_path, monkeypatch):
    """A user with a profile, a startup file, a kernel and a style of their own."""
    files = {
        "ipython/profile_default/ipython_config.py": CONFIG,
        "ipython/profile_default/startup/00.py": PRINTS,
        "startup.py": PRINTS,
        "style/matplotlibrc": "figure.dpi: 300\n",
        "data/kernels/python3/kernel.json": json.dumps(
            {"argv": ["false", "{connection_file}"], "display_name": "theirs"}
        ),
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("PYTHONSTARTUP", str(tmp_path / "startup.py"))
    monkeypatch.setenv("MATPLOTLIBRC", str(tmp_path / "style" / "matplotlibrc"))
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "data"))
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "data"))


def notebook(folder, saved: str):
    """A notebook whose second cell has shown `saved`."""
    output = nbformat.v4.new_output(
        "execute_result", {"text/plain": saved}, execution_count=1, metadata={}
    )
    cell = nbformat.v4.new_code_cell(CELL, outputs=[output], execution_count=1)
    path = folder / "99_shown.ipynb"
    nbformat.write(
        nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell("# 99 · Shown"), cell]), path
    )
    return path


@pytest.mark.timeout(120)
@pytest.mark.usefixtures("user")
def test_execute_saves_what_the_course_shows(tmp_path):
    path = notebook(tmp_path, "")
    kept = dict(os.environ)
    execute(path)
    assert dict(os.environ) == kept
    outputs = nbformat.read(path, 4).cells[-1].outputs
    assert [output.get("data", output).get("text/plain") for output in outputs] == [SHOWN]


@pytest.mark.timeout(120)
@pytest.mark.usefixtures("user")
def test_the_tests_compare_what_the_course_shows(tmp_path):
    notebook(tmp_path, SHOWN)
    plugins = ["-p", "nbval.plugin", "-p", "tests.session"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *plugins, "--nbval", str(tmp_path)],
        cwd=tmp_path,
        env=os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(paths.ROOT)},
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert "1 passed" in done.stdout, done.stdout


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("jupyter_server_config.py", "c.ServerApp.contents_manager_class = 'gone.Manager'\n"),
        ("jupyter_lab_config.py", "c.ServerApp.contents_manager_class = 'gone.Manager'\n"),
        ("jupyter_config.json", '{"ServerApp": {"contents_manager_class": "gone.Manager"}}'),
    ],
)
def test_a_setting_that_keeps_jupyterlab_from_starting_is_named_with_its_file(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    own = {"JUPYTER_CONFIG_DIR": str(tmp_path)}
    own["JUPYTER_CONFIG_PATH"] = str(paths.ROOT / "tools" / "jupyter")  # as run.sh does
    done = subprocess.run(
        [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root"],
        env=os.environ | own,
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 1
    assert f"run.sh: {tmp_path / name} sets ServerApp.contents_manager_class to gone.Man" in (
        done.stderr
    )
    assert "Traceback" not in done.stderr
