"""A session of torchrunx."""

import torchrunx

from benchmarks.peers.work import serve, work

if __name__ == "__main__":
    launcher = torchrunx.Launcher(hostnames=["localhost"], workers_per_host=2, backend="gloo")
    serve(lambda task: launcher.run(work, task))
