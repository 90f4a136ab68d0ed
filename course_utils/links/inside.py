"""What `links` starts in namespaces of its own: the switch, and a host for each rank.

torch is imported once, here. Hosts are forked, and each enters a network namespace before it calls
torchrun's own `main`, which forks the rank.
"""

import base64
import ctypes
import json
import os
import subprocess
import sys
import threading
from pathlib import Path

from course_utils import paths
from course_utils.launcher.agent import BOOTSTRAP
from course_utils.worker import guards

CLONE_NEWNET = 0x40000000  # include/uapi/linux/sched.h
QUEUE = "burst 64kb latency 100ms"  # of a link: small beside what is sent, or it would be free
PORT = 29500  # nobody else is in these namespaces


def main(script: str, folder: str, hosts: str, mbit: str, *arguments: str) -> int:
    """Build the network, run `script` on all hosts and wait; 0 if it ended well on each."""
    threading.Thread(target=end_with_caller, daemon=True).start()
    import torch.distributed.run  # noqa: F401  (before the fork, once for all)

    ip("link add name bridge type bridge")
    ip("link set bridge up")
    running = set()
    for index in range(int(hosts)):
        entered, enter = os.pipe(), os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                new_network()
                os.write(entered[1], b"!")
                os.read(enter[0], 1)  # the card is there
                host(index, int(hosts), mbit, script, Path(folder), list(arguments))
            except BaseException as error:
                print(f"host {index}: {type(error).__name__}: {error}", flush=True)
                os._exit(1)
            os._exit(0)
        os.close(entered[1])
        os.read(entered[0], 1)  # nothing, if the host has failed: then the next line does too
        ip(f"link add name port{index} type veth peer name card netns {pid}")
        ip(f"link set port{index} master bridge up")
        limit(f"port{index}", mbit)
        os.write(enter[1], b"!")
        running.add(pid)
    while running:
        pid, status = os.wait()  # of orphans too: this is their pid 1
        if pid in running and status:
            return 1  # the other hosts would wait for this one; they end with this process
        running.discard(pid)
    return 0


def end_with_caller() -> None:
    """End this process, and so all of its PID namespace, when the caller's end of stdin closes."""
    os.read(0, 1)  # not sys.stdin: a fork would inherit that locked
    os._exit(1)


def new_network() -> None:
    """Leave the network of the process this one was forked from."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "cannot make a network namespace")


def host(
    index: int, hosts: int, mbit: str, script: str, folder: Path, arguments: list[str]
) -> None:
    """Set up one host's network and run torchrun there."""
    guards.die_with_parent(1)
    ip("link set lo up")
    ip(f"address add 10.0.0.{index + 1}/24 dev card")
    ip("link set card up")
    limit("card", mbit)
    own = folder / f"host_{index}"
    own.mkdir()
    (folder / f"rank_{index}").mkdir()
    (own / "rank_0").symlink_to(folder / f"rank_{index}")  # its rank 0 is rank `index` of all
    # On the CPU: each host has one rank, and all would take the machine's first GPU.
    own_environ = {"COURSE_DEVICE": "cpu", "GLOO_SOCKET_IFNAME": "card", "OMP_NUM_THREADS": "1"}
    environ = os.environ | own_environ
    os.environ.update(environ)
    orders = {
        "parent": os.getpid(),
        "run_dir": str(own),
        "script": script,
        "arguments": arguments,
        "import_from": list(dict.fromkeys([str(Path(script).parent), str(paths.workers())])),
        "cwd": os.getcwd(),
        "environ": environ,
    }
    import torch.distributed.run

    torch.distributed.run.main(
        [
            *("--nnodes", str(hosts), "--node-rank", str(index), "--nproc-per-node", "1"),
            *("--master-addr", "10.0.0.1", "--master-port", str(PORT)),
            *("--local-addr", f"10.0.0.{index + 1}", "--monitor-interval", "0.05"),
            *("--log-dir", str(own / "torchrun"), "--run-path", "--start-method", "fork"),
            BOOTSTRAP,
            base64.b64encode(json.dumps(orders).encode()).decode(),
        ]
    )


def ip(words: str) -> None:
    """One call of iproute2's `ip`."""
    subprocess.run(["ip", *words.split()], check=True)


def limit(card: str, mbit: str) -> None:
    """Let a card send no more than `mbit` Mbit/s."""
    words = f"qdisc add dev {card} root tbf rate {mbit}mbit {QUEUE}"
    subprocess.run(["tc", *words.split()], check=True)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
