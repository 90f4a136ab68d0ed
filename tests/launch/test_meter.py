"""The meter counts what each rank moves; the kernel's own counters agree."""

import socket
import sys
import threading
from contextlib import suppress

import pytest

from nbtorchrun import meter

HEAD = """\
import torch, torch.distributed as dist
from nbtorchrun.meter import meter
from nbtorchrun.worker import init, report
init()
rank, world = dist.get_rank(), dist.get_world_size()
"""


@pytest.fixture
def count(worker, launch):
    """Reports of each rank, of a script that follows `HEAD`."""

    def run(body: str, nproc: int = 3) -> list[dict]:
        ranks = launch(worker("counts.py", HEAD + body), nproc=nproc, warm=True).ranks
        return [rank.reports[0] for rank in ranks]

    return run


def test_messages_count_as_what_they_are(count):
    body = """
after, before = (rank + 1) % world, (rank - 1) % world
mine, other = torch.zeros(1000 + rank), torch.zeros(1000 + before)
with meter() as moved:
    for work in (dist.isend(mine, after), dist.irecv(other, before)):
        work.wait()
    batch = [dist.P2POp(dist.isend, mine, after), dist.P2POp(dist.irecv, other, before)]
    for work in dist.batch_isend_irecv(batch):
        work.wait()
report(sent=moved.sent, received=moved.received, messages=moved.messages,
       collectives=len(moved.collectives))
"""
    for rank, counted in enumerate(count(body)):
        assert counted["messages"] == 2
        assert counted["collectives"] == 0
        assert counted["sent"] == 2 * 4 * (1000 + rank)
        assert counted["received"] == 2 * 4 * (1000 + (rank - 1) % 3)


def test_each_collective_counts_as_the_least_a_rank_must_move(count):
    body = """
one, all_ = torch.zeros(12), torch.zeros(12 * world)
rooted = list(all_.chunk(world)) if rank == 1 else None
parts = list(all_.chunk(world))
with meter() as moved:
    dist.all_reduce(all_)
    dist.all_gather_into_tensor(all_, one)
    dist.all_gather(parts, one)
    dist.reduce_scatter_tensor(one, all_)
    dist.reduce_scatter(one, parts)
    dist.all_to_all_single(torch.empty_like(all_), all_)
    dist.broadcast(one, 1)
    dist.reduce(one, 1)
    dist.scatter(one, rooted, 1)
    dist.gather(one, rooted, 1)
    dist.barrier()
report(calls=[[call.name, call.sent, call.received] for call in moved.calls],
       collectives=dict(moved.collectives))
"""
    one, n = 48, 3
    everyone = [
        ["all_reduce", 4 * one, 4 * one],  # 2(N-1)/N of N parts
        *[["all_gather", 2 * one, 2 * one]] * 2,
        *[["reduce_scatter", 2 * one, 2 * one]] * 2,
        ["all_to_all", 2 * one, 2 * one],
    ]
    for rank, counted in enumerate(count(body)):
        place = (rank - 1) % n  # after the root, rank 1
        along_a_chain = (one * (place < n - 1), one * (place > 0))
        assert counted["calls"] == [
            *everyone,
            ["broadcast", *along_a_chain],
            ["reduce", *along_a_chain[::-1]],
            ["scatter", *((2 * one, 0) if rank == 1 else (0, one))],
            ["gather", *((0, 2 * one) if rank == 1 else (one, 0))],
            ["barrier", 0, 0],
        ]
        assert counted["collectives"]["reduce_scatter"] == 2


def test_an_all_to_all_of_unequal_parts_counts_all_but_its_own(count):
    body = """
leaving = [[3, 0, 1], [2, 5, 0], [0, 4, 2]]
coming = [row[rank] for row in leaving]
rows, room = torch.zeros(sum(leaving[rank]), 7), torch.zeros(sum(coming), 7)
with meter() as moved:
    dist.all_to_all_single(room, rows, coming, leaving[rank])
report(sent=moved.sent, received=moved.received)
"""
    found = [(each["sent"] / 28, each["received"] / 28) for each in count(body)]
    assert found == [(1, 2), (2, 4), (4, 1)]


def test_what_ddp_and_fsdp_send_from_cpp_is_seen(count):
    body = """
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel as DDP
batch = torch.ones(2, 10)
ddp, sharded = DDP(torch.nn.Linear(10, 10)), fully_shard(torch.nn.Linear(10, 10))
for _ in range(2):  # at its second forward DDP rebuilds its buckets, and broadcasts them
    ddp(batch).sum().backward()
with meter() as by_ddp:
    ddp(batch).sum().backward()
with meter() as without:
    with ddp.no_sync():
        ddp(batch).sum().backward()
with meter() as by_fsdp:
    sharded(batch).sum().backward()
report(ddp=dict(by_ddp.collectives), bytes=by_ddp.calls[0].bytes,
       without=dict(without.collectives), fsdp=dict(by_fsdp.collectives))
"""
    for counted in count(body, nproc=2):
        assert counted["ddp"] == {"all_reduce": 1}
        assert counted["bytes"] == 110 * 4
        assert counted["without"] == {}
        assert counted["fsdp"] == {"all_gather": 1, "reduce_scatter": 1}


def test_functional_collectives_and_dtensor_are_seen(count):
    body = """
import torch.distributed._functional_collectives as functional
from torch.distributed.tensor import Replicate, Shard, distribute_tensor, init_device_mesh
mesh = init_device_mesh("cpu", (world,))
sharded = distribute_tensor(torch.ones(6, 4), mesh, [Shard(0)])
with meter() as moved:
    functional.all_reduce(torch.ones(6), "sum", dist.group.WORLD).sum()
    sharded.redistribute(mesh, [Replicate()]).to_local().sum()
report(calls=[list(call[:2]) for call in moved.calls])
"""
    for counted in count(body):
        assert counted["calls"] == [["all_reduce", 24], ["all_gather", 32]]


def test_what_an_operation_on_dtensors_sends_is_seen(count):
    body = """
from torch.distributed.tensor import Shard, distribute_tensor, init_device_mesh
from torch.distributed.tensor.parallel import loss_parallel
mesh = init_device_mesh("cpu", (world,))
logits = distribute_tensor(torch.ones(5, 12), mesh, [Shard(1)])
with loss_parallel(), meter() as moved:
    torch.nn.functional.cross_entropy(logits, torch.arange(5))
report(calls=[list(call[:2]) for call in moved.calls])
"""
    for counted in count(body):
        assert counted["calls"] == [["all_reduce", 20]] * 3


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux counts a socket's bytes")
@pytest.mark.parametrize("nproc", [2, 3, 4])
def test_the_kernel_counts_the_same(count, nproc):
    body = """
def compare(transfer):
    dist.barrier()
    with meter() as moved:
        transfer()
        dist.barrier()
    dist.barrier()  # what has been closed has no count: no rank may leave before all have read
    return moved.wire.sent / max(moved.sent, 1), moved.wire.received / max(moved.received, 1)

def ring():
    works = [dist.isend(large, (rank + 1) % world), dist.irecv(other, (rank - 1) % world)]
    for work in works:
        work.wait()

large, other = torch.zeros(1_200_000), torch.zeros(1_200_000)
report(ring=compare(ring), all_reduce=compare(lambda: dist.all_reduce(large)),
       reduce_scatter=compare(
           lambda: dist.reduce_scatter_tensor(torch.empty(1_200_000 // world), large)))
"""
    for counted in count(body, nproc):
        assert counted["ring"] == pytest.approx([1, 1], abs=0.01)
        assert counted["all_reduce"] == pytest.approx([1, 1], abs=0.01)
        # gloo's reduce-scatter is an all-reduce inside: twice what it need be
        assert counted["reduce_scatter"] == pytest.approx([2, 2], abs=0.01)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux counts a socket's bytes")
def test_the_kernel_is_asked_only_where_all_goes_over_tcp(worker, launch):
    source = """
import torch.distributed as dist
from torch.testing._internal.distributed.fake_pg import FakeStore
from nbtorchrun.meter import meter
from nbtorchrun.worker import report

def begin(name):
    dist.init_process_group(name, rank=0, world_size=1, store=FakeStore())

def counted(name=None, inside=lambda: None):
    if name:
        begin(name)
    with meter() as moved:
        inside()
    if dist.is_initialized():
        dist.destroy_process_group()
    return moved.wire is not None

names = ["gloo", "cpu:gloo", "fake", "cpu:fake", "cpu:gloo,cuda:fake"]
report(none=counted(), default={name: counted(name) for name in names},
       begins=counted(inside=lambda: begin("fake")),
       ends=counted("fake", dist.destroy_process_group))
"""
    (rank,) = launch(worker("asks.py", source), nproc=1, warm=True).ranks
    assert rank.reports[0]["none"]  # connections of one's own
    assert [name for name, counted in rank.reports[0]["default"].items() if counted] == [
        "gloo",
        "cpu:gloo",
    ]
    assert not rank.reports[0]["begins"]
    assert not rank.reports[0]["ends"]


def test_what_follows_the_block_is_not_counted(count):
    body = """
with meter() as moved:
    dist.all_reduce(torch.zeros(3))
dist.all_reduce(torch.zeros(3))
report(count=moved.collectives["all_reduce"])
"""
    assert [counted["count"] for counted in count(body)] == [1, 1, 1]


@pytest.fixture
def connection():
    """A connection of this process with itself, as (sends, reads)."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        sends, reads = socket.create_connection(server.getsockname()), server.accept()[0]
    with sends, reads:
        sends.setblocking(False)
        yield sends, reads


def fill(sends: socket.socket) -> int:
    """Send until no more can be sent; the bytes that went."""
    sent = 0
    with suppress(BlockingIOError):
        while True:
            sent += sends.send(bytes(1 << 16))
    return sent


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux counts a socket's bytes")
@pytest.mark.parametrize("inside", [True, False])
def test_bytes_that_the_kernel_still_holds_are_not_guessed(connection, monkeypatch, inside):
    """Held at the end, they would be missing; held from before, they would be too many."""
    monkeypatch.setattr(meter, "DRAIN", 0.2)
    sends, reads = connection
    before = 0 if inside else fill(sends)
    expected = pytest.warns(RuntimeWarning, match="bytes on the wire are not known here")
    with expected, meter.meter() as moved:
        if inside:
            fill(sends)
        else:
            read(reads, before)
    assert moved.wire is None


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux counts a socket's bytes")
def test_bytes_from_before_do_not_count(connection):
    """A thread reads what was sent before the block, once the block is about to begin."""
    sends, reads = connection
    sent = fill(sends)
    reader = threading.Thread(target=read, args=(reads, sent))
    threading.Timer(0.3, reader.start).start()
    with meter.meter() as moved:
        pass
    reader.join()
    assert moved.wire.sent == 0


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux counts a socket's bytes")
def test_bytes_of_a_connection_that_closes_inside_the_block_are_not_known(connection):
    sends, reads = connection
    with meter.meter() as moved:
        read(reads, sends.send(bytes(1000)))
        sends.close()
    assert moved.wire is None


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux counts a socket's bytes")
def test_a_connection_that_opens_inside_the_block_counts_whole():
    with socket.create_server(("127.0.0.1", 0)) as server, meter.meter() as moved:
        sends, reads = socket.create_connection(server.getsockname()), server.accept()[0]
        read(reads, sends.send(bytes(1000)))
    with sends, reads:
        assert moved.wire == (1000, 1000)


def read(reads: socket.socket, size: int) -> None:
    """Read so many bytes."""
    while size > 0:
        size -= len(reads.recv(1 << 16))
