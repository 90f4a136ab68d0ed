"""Runs that other threads start: the stop button ends them, and those that wait say so."""

import pytest

from tests.launch.page import html

HANGS = """\
import os, time
open(os.environ['STARTED'], 'a').close()
time.sleep(1000)
"""
POOL = """\
from concurrent.futures import ThreadPoolExecutor
began = time.monotonic()
with ThreadPoolExecutor(2) as pool:
    runs = [pool.submit(launch, "hangs.py", env=environ, stall=1000, timeout=1000) for _ in "abc"]
"""


@pytest.fixture(autouse=True)
def no_rank_is_left(no_rank_of_the_page_is_left):
    """The kernel's agent stays for the next test."""


def test_one_press_ends_the_runs_of_all_threads(page, tmp_path):
    started = tmp_path / "started"
    page.run(
        "import time\nfrom course_utils import paths\n"
        f"(paths.workers() / 'hangs.py').write_text({HANGS!r})\n"
        f"environ, kept = {{'STARTED': {str(started)!r}}}, []\n"
    )
    waits = "waits for the run that another thread started to end: torchrun"
    sent = page.run(
        POOL, until=lambda message: started.exists() and waits in html(message), then=stop(page)
    )
    assert [m["content"]["ename"] for m in sent if m["msg_type"] == "error"] == [
        "KeyboardInterrupt"
    ]
    page.run(
        "took = time.monotonic() - began\n"
        "errors = [type(run.exception()).__name__ for run in runs]\n"
        "texts = [str(run.exception()) for run in runs]\n"
    )
    sent = page.run("print(errors, took < 60, texts)")
    said = sent[0]["content"]["text"]
    assert "['Stopped', 'Stopped', 'Stopped'] True" in said
    assert "you stopped the run after" in said
    assert "stopped before its ranks were started" in said


def stop(page):
    """Press stop, once."""

    return lambda: page.manager.interrupt_kernel() and None


def test_the_next_launch_is_not_stopped(page):
    page.run("(paths.workers() / 'fine.py').write_text('print(1)')")
    page.run(
        "import threading\n"
        "thread = threading.Thread(target=lambda: kept.append(launch('fine.py', check=False)))\n"
        "thread.start()\nthread.join()\n"
    )
    assert page.run("print(kept[-1].ok)")[0]["content"]["text"] == "True\n"
