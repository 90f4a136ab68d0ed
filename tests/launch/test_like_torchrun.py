"""A rank of `launch`, warm and cold, beside one of plain torchrun: what its script finds."""

import json
import os
import resource
import signal
import subprocess
import sys

import pytest

from course_utils import paths

FINDS = """
import json, os, resource, signal, sys
descriptors = {}
for name in os.listdir("/dev/fd"):
    try:
        os.fstat(int(name))  # the listing's own descriptor is closed by now
        descriptors[name] = os.readlink(f"/proc/self/fd/{name}").partition(":")[0]
    except OSError:
        pass
umask = os.umask(0)
os.umask(umask)
import multiprocessing, threading, torch
found = {
    "environ": dict(os.environ),
    "cwd": os.getcwd(),
    "path": sys.path,
    "argv": sys.argv,
    "name": [__name__, multiprocessing.current_process().name],
    "umask": umask,
    "nice": os.nice(0),
    "limits": {
        name: resource.getrlimit(getattr(resource, name))
        for name in dir(resource) if name.startswith("RLIMIT_")
    },
    "handlers": {number.name: str(signal.getsignal(number)) for number in signal.Signals},
    "threads": [threading.active_count(), torch.get_num_threads()],
    "descriptors": descriptors,
    "threads of the parent": len(os.listdir(f"/proc/{os.getppid()}/task")),
}
if os.environ["RANK"] == "1":
    with open(sys.argv[1], "w") as file:
        json.dump(found, file)
"""
# What differs from torchrun, and why.
OTHER = {
    "NBTORCHRUN_RUN_DIR": "where the run is noted",
    "PYTHONPATH": "the script finds the package wherever it lies",
    "GLOO_SOCKET_IFNAME": "no port is open to the network, and no host name is looked up",
    "NCCL_SOCKET_IFNAME": "the same",
    "MASTER_ADDR": "the same: 127.0.0.1",
    "TORCH_DISTRIBUTED_DEBUG": "errors of DDP name the parameters",
    "PYTHONUNBUFFERED": "torchrun gives -u instead",
    "MASTER_PORT": "each run's own",
    "TORCHELASTIC_RUN_ID": "each run's own",
    "TORCHELASTIC_ERROR_FILE": "each run's own",
    "TORCHELASTIC_SIGNALS_TO_HANDLE": "torchrun's own: its ranks have no use for it",
    "TORCHINDUCTOR_CACHE_DIR": "set by an import of torch's compiler",
}
ARGUMENTS = ("--a", "b c", "$HOME")


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """What the script finds under torchrun, warm and cold, where little is as by default."""
    from course_utils import launch
    from nbtorchrun.launcher import client

    folder = tmp_path_factory.mktemp("found")
    script = paths.workers() / "finds.py"
    script.write_text(FINDS)
    umask, files = os.umask(0o027), resource.getrlimit(resource.RLIMIT_NOFILE)
    client.close_kept_agent()  # the next one inherits what a shell's `&` does
    handler = signal.signal(signal.SIGQUIT, signal.SIG_IGN)
    client.kept_agent()  # a limit that changes after its start must reach the ranks, too
    resource.setrlimit(resource.RLIMIT_NOFILE, (files[0] - 1, files[1]))
    here = os.getcwd()
    os.chdir(folder)
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    try:
        for warm in (True, False):
            launch("finds.py", folder / str(warm), *ARGUMENTS, warm=warm, show=False)
        subprocess.run(
            [*torchrun, "--nproc-per-node", "2", script, folder / "plain", *ARGUMENTS],
            env=os.environ | {"OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1")},
            check=True,
            timeout=100,
        )
    finally:
        os.chdir(here)
        os.umask(umask)
        resource.setrlimit(resource.RLIMIT_NOFILE, files)
        signal.signal(signal.SIGQUIT, handler)
        client.close_kept_agent()
        script.unlink()
    names = {"plain": "plain", "warm": "True", "cold": "False"}
    return {how: json.loads((folder / name).read_text()) for how, name in names.items()}


pytestmark = [
    pytest.mark.timeout(200),
    pytest.mark.parametrize("how", ["warm", "cold"]),
    pytest.mark.skipif(sys.platform != "linux", reason="reads /proc"),
]


def test_the_same_variables(found, how):
    ours, plain = (
        {name: value for name, value in found[which]["environ"].items() if name not in OTHER}
        for which in (how, "plain")
    )
    assert ours == plain


def test_the_same_folder_path_and_arguments(found, how):
    ours, plain = found[how], found["plain"]
    assert ours["cwd"] == plain["cwd"]
    assert ours["argv"][2:] == plain["argv"][2:] == list(ARGUMENTS)
    assert ours["argv"][0] == plain["argv"][0]
    assert ours["name"] == plain["name"]
    beside = str(paths.ROOT)  # from PYTHONPATH
    assert [p for p in ours["path"] if p != beside] == [p for p in plain["path"] if p != beside]


def test_the_same_limits_handlers_and_descriptors(found, how):
    ours, plain = found[how], found["plain"]
    for name in ("umask", "nice", "limits", "handlers", "threads"):
        assert ours[name] == plain[name], name
    more = {kind for number, kind in ours["descriptors"].items() if int(number) > 2}
    own = {kind for kind in more if "/rank_1/" in kind}  # its stacks and its log of calls
    assert more - own <= {"pipe", "/dev/null"}  # of multiprocessing: none of the notebook's
    # Python's and torch's locks are safe over a fork only if no other thread can hold them.
    assert how == "cold" or ours["threads of the parent"] == 1
