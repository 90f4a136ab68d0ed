"""What `links` starts in its own namespaces: the bridge and the hosts.

torch is imported once, here. Each host is forked, and enters its own network namespace before it
calls torchrun's `main`, which forks its ranks.
"""

import contextlib
import ctypes
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

from course_utils.links import BRIDGE, address, limit, link, meeting
from course_utils.links.delay import start
from nbtorchrun.launcher.request import script_orders
from nbtorchrun.worker import bootstrap, guards

CLONE_NEWNET = 0x40000000  # include/uapi/linux/sched.h


def main(
    script: str,
    folder: str,
    hosts: str,
    nproc: str,
    mbit: str,
    delay: str,
    restarts: str,
    patience: str,
    *arguments: str,
) -> int:
    """Build the network, run `script` on all hosts and wait; 0 if no host failed."""
    threading.Thread(target=end_with_caller, daemon=True).start()
    with guards.modules_stay():  # before the fork, once for all
        import torch._dynamo  # an optimizer's first step imports it
        import torch.distributed.run  # noqa: F401

    shell(BRIDGE)
    running = set()
    for index in range(int(hosts)):
        pid = os.fork()
        if pid == 0:
            try:
                join_network(index, mbit, float(delay))
                words = meeting(int(hosts), int(nproc), int(restarts))
                ranks = range(index * int(nproc), (index + 1) * int(nproc))
                host(index, ranks, words, Path(script), Path(folder), list(arguments))
            except BaseException as error:
                print(f"host {index}: {type(error).__name__}: {error}", flush=True)
                os._exit(1)
            time.sleep(2 * float(delay))  # with the host its card goes, and what is on its way
            os._exit(0)
        running.add(pid)
    while running:
        pid, status = os.wait()  # orphans too: this process is their pid 1
        if pid in running and status:
            wait_for(running - {pid}, float(patience))
            return 1  # the other hosts would wait for this one; the kernel ends them now
        running.discard(pid)
    return 0


def wait_for(hosts: set[int], patience: float) -> None:
    """Let the other hosts go on for a while when one has failed."""
    deadline = time.monotonic() + patience
    while hosts and time.monotonic() < deadline:
        pid, _ = os.waitpid(-1, os.WNOHANG)
        hosts.discard(pid)
        time.sleep(0.02)


def end_with_caller() -> None:
    """End this process, and so its PID namespace, when the caller's end of stdin closes."""
    os.read(0, 1)  # not sys.stdin: a fork would inherit its lock
    os._exit(1)


def join_network(index: int, mbit: str, delay: float) -> None:
    """Leave the network of the process this one was forked from, but for a link to its bridge."""
    guards.die_with_parent(1)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "cannot make a network namespace")
    wire = "wire" if delay else "card"  # where packets are late, the card is another one before it
    joined = link(f"port{index}", mbit, f"{wire} netns {os.getpid()}")
    shell(f"nsenter --net=/proc/1/ns/net sh -c '{joined}'")  # the bridge's end is made over there
    shell(f"ip link set lo up && ip link set {wire} up && {limit(wire, mbit)}")
    if delay:
        start("card", wire, delay)
    shell(f"ip address add {address(index)}/24 dev card && ip link set card up")
    # A send returns when its bytes lie in this buffer. In a large one, the messages that a rank
    # sends one after another would share the link, and all of them would arrive late.
    room = max(65_536, int((0.004 + 2 * delay) / 8 * 1e6 * float(mbit)))
    with contextlib.suppress(OSError):  # some containers forbid it
        Path("/proc/sys/net/ipv4/tcp_wmem").write_text(f"4096 16384 {room}")


def host(
    index: int, ranks: range, words: list[str], script: Path, folder: Path, arguments: list[str]
) -> None:
    """Run torchrun for the `ranks` of one host."""
    own = folder / f"host_{index}"
    own.mkdir()
    for local, rank in enumerate(ranks):
        (folder / f"rank_{rank}").mkdir()
        (own / f"rank_{local}").symlink_to(folder / f"rank_{rank}")
    # On the CPU: the hosts would all take the machine's first GPUs.
    os.environ.update(COURSE_DEVICE="cpu", GLOO_SOCKET_IFNAME="card", OMP_NUM_THREADS="1")
    # torch 2.15 would keep the ranks' store over a restart, with the addresses of the dead in it.
    os.environ["TORCH_DISABLE_SHARE_RDZV_TCP_STORE"] = "1"
    orders = script_orders(script, arguments, own)
    orders |= {"parent": os.getpid(), "environ": dict(os.environ)}
    import torch.distributed.run

    torch.distributed.run.main(
        [
            *words,
            *("--rdzv-conf", f"is_host={int(index == 0)}"),  # its name does not lead to its card
            *("--local-addr", address(index), "--monitor-interval", "0.05"),
            *("--log-dir", str(own / "torchrun"), "--run-path", "--start-method", "fork"),
            bootstrap.__file__,
            bootstrap.argument(orders),
        ]
    )


def shell(commands: str) -> None:
    """Run shell commands; raises if one fails."""
    subprocess.run(["sh", "-c", commands], check=True)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
