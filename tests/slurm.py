"""A Slurm cluster of two nodes on this machine, in namespaces of its own: nothing of it stays."""

import contextlib
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psutil

from course_utils import links

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "nsenter", "ip")
ADDRESSES = "10.0.0.10", "10.0.0.11"  # of the nodes; both belong to this one host
# The controller and both nodes run here, so all of them have this host's name.
CONFIGURATION = """
ClusterName=course
SlurmctldHost={host}({controller})
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CredType=cred/munge
# A job that was requeued waits until its credentials have expired: 2 minutes, unless set here.
AuthInfo=socket={folder}/munge.socket,cred_expire=5
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/%n.log
MailProg=/bin/true
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
NodeName=node1 NodeHostname={host} NodeAddr={controller} Port=17001 CPUs=4
NodeName=node2 NodeHostname={host} NodeAddr={other} Port=17002 CPUs=4
PartitionName=all Nodes=ALL Default=YES
"""
START = """
set -eu
cd "$1"
ip link set lo up
ip link add card type veth peer name other
ip link set other up
ip link set card up
for address in $2; do ip address add "$address/24" dev card; done
mount --bind hosts /etc/hosts
munged --force --key-file="$1/munge.key" --socket="$1/munge.socket" --pid-file="$1/munge.pid" \\
    --log-file="$1/munge.log" --seed-file="$1/munge.seed"
slurmctld -i
slurmd -N node1
slurmd -N node2
echo started
read -r _ # until the caller closes the pipe
"""


def why_not() -> str:
    """Why no cluster can be started here, its programs aside, in one sentence; '' if it can."""
    if os.geteuid() != 0:
        return "a Slurm cluster of its own namespaces needs root"
    return links.why_not()


class Cluster:
    """Runs commands where the cluster is; `log` reads what its daemons wrote."""

    def __init__(self, folder: Path, inside: int) -> None:
        self.folder, self.inside = folder, inside

    def __call__(self, *words: object, **environ: str) -> str:
        """The output of a command that runs inside; raises if it fails."""
        enter = ["nsenter", "--target", str(self.inside), "--net", "--mount", "--pid"]
        done = subprocess.run(
            [*enter, "--wd=" + os.getcwd(), *map(str, words)],
            env=os.environ | {"SLURM_CONF": str(self.folder / "slurm.conf")} | environ,
            capture_output=True,
            text=True,
            timeout=30,
        )
        assert done.returncode == 0, f"{words}: {done.stderr}\n{self.log()}"
        return done.stdout.strip()

    def wait_for(self, job: str, deadline: float) -> list[str]:
        """The states that a job went through until it was gone from the queue."""
        seen, end = [], time.monotonic() + deadline
        while time.monotonic() < end:
            state = self("squeue", "--noheader", "--jobs", job, "--format", "%T %r")
            if state.split()[:1] in ([], ["COMPLETED"], ["FAILED"], ["TIMEOUT"], ["CANCELLED"]):
                return [*seen, *state.split()[:1]]
            if seen[-1:] != [state]:
                seen.append(state)
            time.sleep(0.5)
        raise AssertionError(f"job {job} did not end in {deadline} s: {seen}\n{self.log()}")

    def log(self) -> str:
        """The last lines of all logs."""
        logs = sorted(self.folder.glob("*.log"))
        return "\n".join(f"{log.name}: {log.read_text(errors='replace')[-2000:]}" for log in logs)


@contextlib.contextmanager
def cluster() -> Iterator[Cluster]:
    """A cluster whose daemons and jobs are gone when the block ends."""
    # A short path: Slurm makes sockets in it, and their names have at most 108 letters.
    folder = tempfile.TemporaryDirectory(prefix="slurm-", dir="/tmp")
    with folder as name, running(Path(name)) as made:
        yield made


@contextlib.contextmanager
def running(folder: Path) -> Iterator[Cluster]:
    """A cluster that keeps its files in a folder."""
    host = os.uname().nodename
    (folder / "state").mkdir()
    for node in ("node1", "node2"):
        (folder / node).mkdir()
    controller, other = ADDRESSES
    (folder / "hosts").write_text(
        f"127.0.0.1 localhost\n{controller} node1 {host}\n{other} node2\n"
    )
    text = CONFIGURATION.format(host=host, controller=controller, other=other, folder=folder)
    (folder / "slurm.conf").write_text(text)
    key = folder / "munge.key"
    key.touch(0o600)
    key.write_bytes(os.urandom(128))
    process = subprocess.Popen(
        [*links.namespaces(), "bash", "-c", START, "bash", str(folder), " ".join(ADDRESSES)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=os.environ | {"SLURM_CONF": str(folder / "slurm.conf")},
        start_new_session=True,
        text=True,
    )
    try:
        said = []
        while (line := process.stdout.readline()) != "started\n":
            said.append(line)
            assert line, f"the cluster did not start: {''.join(said)}"
        (inside,) = psutil.Process(process.pid).children()
        yield Cluster(folder, inside.pid)
    finally:
        process.stdin.close()  # the namespaces' first process ends, and the kernel ends the rest
        try:
            process.wait(10)
        finally:
            process.kill()
            process.wait()
            process.stdout.close()
