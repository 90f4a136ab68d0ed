"""A kernel as an open page uses it, and the parts of the messages that it sends."""

import time

import psutil
from jupyter_client.manager import start_new_kernel

from tests.conftest import is_rank

DEADLINE = 60  # seconds


class Page:
    """A kernel, and what an open page or a program that executes notebooks does with it."""

    def __init__(self):
        self.manager, self.client = start_new_kernel(startup_timeout=DEADLINE)
        self.run("from course_utils import check, launch", cell="the first cell")

    def run(self, source, cell="a cell", until=None, then=None, key="cellId"):
        """Execute a cell; the messages it sent, and `then()` once `until(message)` holds."""
        request = self.client.session.msg(
            "execute_request",
            {"code": source, "silent": False, "store_history": True, "allow_stdin": False},
            metadata={key: cell} if cell else {},
        )
        self.client.shell_channel.send(request)
        sent, end = [], time.monotonic() + 2 * DEADLINE
        while time.monotonic() < end:
            message = self.client.get_iopub_msg(timeout=DEADLINE)
            if message["parent_header"].get("msg_id") != request["msg_id"]:
                continue
            if message["content"].get("execution_state") == "idle":
                return [
                    reply for reply in sent if reply["msg_type"] not in ("status", "execute_input")
                ]
            sent.append(message)
            if until and until(message):
                until = then()
        raise AssertionError(f"the cell did not end; it sent {sent}")

    def ranks(self) -> list[psutil.Process]:
        """The ranks that live; the kernel's agent leads a process group too."""
        kernel = psutil.Process(self.manager.provisioner.pid)
        found = kernel.children(recursive=True)
        return [process for process in found if is_rank(process) and process.ppid() != kernel.pid]

    def close(self):
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)


def html(message) -> str:
    return message["content"].get("data", {}).get("text/html", "")


def text(messages) -> str:
    return "".join(reply["content"]["text"] for reply in messages if reply["msg_type"] == "stream")


def seen_all(*wanted):
    """Whether messages up to now have had all of `wanted` in their HTML."""
    missing = set(wanted)

    def look(message) -> bool:
        missing.difference_update([part for part in missing if part in html(message)])
        return not missing

    return look
