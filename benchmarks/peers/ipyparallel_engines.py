"""A session of ipyparallel: two engines that keep running, so no process starts in a call."""

import atexit

import ipyparallel

from benchmarks.peers.work import serve
from nbtorchrun.worker.ports import free_port

cluster = ipyparallel.Cluster(n=2, log_level=40)
engines = cluster.start_and_connect_sync()[:]
atexit.register(cluster.stop_cluster_sync)


def on_engine(rank: int, task: str, port: int) -> None:
    """What one engine does."""
    import os

    from benchmarks.peers.work import work

    os.environ.update(RANK=str(rank), WORLD_SIZE="2", MASTER_ADDR="127.0.0.1")
    os.environ["MASTER_PORT"] = str(port)
    work(task)


def run(task: str) -> None:
    """The work on both engines."""
    port = free_port()
    engines.map_sync(on_engine, [0, 1], [task] * 2, [port] * 2)


serve(run)
