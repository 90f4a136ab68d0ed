"""A back end named nccl, which is gloo with NCCL's rules."""

import atexit
import functools
import os
import threading
import time
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d

from tests.standin import order
from tests.standin.marks import CPU, place_of, span, tensors_in
from tests.standin.state import PROCESS, THREAD

PATIENCE = 60.0  # seconds for the other ranks to make a group, too
ASYNCHRONOUS = (
    *("all_reduce", "broadcast", "reduce", "all_gather", "all_gather_into_tensor", "gather"),
    *("scatter", "reduce_scatter", "reduce_scatter_tensor", "all_to_all", "all_to_all_single"),
    *("isend", "irecv"),
)
BY_BITS = (dist.ReduceOp.BAND, dist.ReduceOp.BOR, dist.ReduceOp.BXOR)
LOG = order.Log()
AVERAGING = {"all_reduce": 0, "reduce": 0, "reduce_scatter": 1, "reduce_scatter_tensor": 1}


def install() -> None:
    """Replace the functions of torch.distributed; groups made before stay what they are."""
    atexit.register(_ended)
    module = distributed_c10d
    module._new_process_group_helper = _pretending(module._new_process_group_helper)
    module._get_object_coll_device = _object_device(module._get_object_coll_device)
    for name in ASYNCHRONOUS:
        wrapped = _asynchronous(getattr(dist, name), name)
        setattr(dist, name, wrapped)
        setattr(module, name, wrapped)  # P2POp compares the two
    module.batch_isend_irecv = dist.batch_isend_irecv = _batching(dist.batch_isend_irecv)
    barrier = functools.wraps(dist.barrier)(_then_idle(dist.barrier))
    dist.barrier = module.barrier = barrier
    module.is_nccl_available = dist.is_nccl_available = lambda: True


def run(func: Any, args: Any, kwargs: Any) -> Any:
    """Run an operation of c10d, if NCCL could; its tensors have to be on this rank's own GPU."""
    group = next(filter(None, map(_group, args)), None)
    if group is not None and on_nccl(group):
        places = set(map(place_of, tensors_in(args)))
        if CPU in places and "cpu:" in dist.get_backend_config(group):
            return func(*args, **kwargs)  # by gloo
        if "barrier" not in str(func):
            _refuse(func, args)
            for place in places - {None}:
                own(place)
            PROCESS.given()
        name = func._schema.name.removeprefix("c10d::").rstrip("_")
        LOG.note(name, group, args[2] if name in ("send", "recv") else -1, THREAD.batch)
    return func(*args, **kwargs)


def _refuse(func: Any, args: Any) -> None:
    """Raise, as torch does, if NCCL has not what is asked for."""
    if "any_source" in str(func):
        raise RuntimeError("ProcessGroupNCCL does not support recvAnysource")
    for tensor in tensors_in(args):
        if place_of(tensor) == CPU:
            raise RuntimeError(f"No backend type associated with device type cpu ({func})")
        if not tensor.is_contiguous():
            raise ValueError(f"Tensors must be contiguous ({func})")
        if tensor.dtype == torch.int16:
            raise TypeError("Input tensor data type is not supported for NCCL process group: Short")


def on_nccl(group: Any = None) -> bool:
    """Whether a group, the world if none is named, has NCCL for its tensors on GPUs."""
    return "cuda:nccl" in dist.get_backend_config(group)


def own(place: torch.device) -> None:
    """This rank uses that GPU in a collective.

    Raises:
        RuntimeError: another rank of this machine does so, too, or it is not the current device,
            on which torch would put what a script does not place.
    """
    rank = str(dist.get_rank())
    key = f"standin/machine {os.environ.get('GROUP_RANK')}/{place}"
    owner = distributed_c10d._get_default_store().compare_set(key, "", rank).decode()
    if owner != rank:
        raise RuntimeError(
            f"Duplicate GPU detected: rank {rank} and rank {owner} both use {place}. Was the "
            "device set, with torch.cuda.set_device(LOCAL_RANK)?"
        )
    first = threading.current_thread() is threading.main_thread()  # others begin with cuda:0
    if first and place.index == int(os.environ["LOCAL_RANK"]) != THREAD.device:
        raise RuntimeError(
            f"a collective on {place}, but the current device is cuda:{THREAD.device}: "
            "torch.cuda.set_device(LOCAL_RANK) first"
        )


def _group(argument: Any) -> Any:
    """The process group that an operation of c10d is given, or None."""
    if isinstance(argument, torch.ScriptObject) and "ProcessGroup" in str(argument._type()):
        return dist.ProcessGroup.unbox(argument)
    return None


def _pretending(make: Any) -> Any:
    """Make a group of gloo, and let it pass for one of NCCL; every rank has to take part."""
    made = [0]

    @functools.wraps(make)
    def making(size: int, rank: int, ranks: list[int], backend: Any, *rest: Any, **named: Any):
        if ranks:
            made[0] += 1
            _together(made[0], ranks)
        config = str(distributed_c10d.BackendConfig(backend))  # of no name: for the device it finds
        if "cuda:nccl" not in config:
            return make(size, rank, ranks, backend, *rest, **named)
        named |= dict.fromkeys({"device_id", "backend_options"} & named.keys())
        both = distributed_c10d.Backend("cpu:gloo,cuda:gloo")
        group, store = make(size, rank, ranks, both, *rest, **named)
        if group in distributed_c10d._world.pg_map:
            distributed_c10d._world.pg_map[group] = (str(backend), store)
            distributed_c10d._world.pg_backend_config[group] = config  # NCCL: no bytes over TCP
        return group, store

    return making


def _together(number: int, ranks: list[int]) -> None:
    """Wait until every rank makes its group of that number; one that has ended never will."""
    store = distributed_c10d._get_default_store()
    store.set(f"standin/group {number}/{dist.get_rank()}", str(ranks))
    deadline = time.monotonic() + PATIENCE
    for other in range(dist.get_world_size()):
        while not store.check([f"standin/group {number}/{other}"]):
            if store.check([f"standin/ended/{other}"]) or time.monotonic() > deadline:
                raise RuntimeError(
                    f"rank {other} has not made the group of ranks {ranks}: every rank of the job "
                    "has to call new_group, also one that is not in the group"
                )
            time.sleep(0.01)


def _ended() -> None:
    if dist.is_initialized():
        distributed_c10d._get_default_store().set(f"standin/ended/{dist.get_rank()}", "")


def _object_device(find: Any) -> Any:
    def device(group: Any = None) -> Any:
        only_gpus = "cpu:" not in dist.get_backend_config(group)
        return "cuda" if on_nccl(group) and only_gpus else find(group)

    return device


class Handle:
    """A collective on its way: until `wait`, nobody may touch what it writes."""

    def __init__(self, work: Any, name: str, written: list[torch.Tensor]):
        self.work, self.name, self.written = work, name, written
        if THREAD.batch is None:
            self.begin()
        else:  # NCCL begins a batch as a whole
            THREAD.batch.append(self)

    def begin(self) -> None:
        PROCESS.coming += [(*span(tensor), self.name, self) for tensor in self.written]

    def wait(self, *timeout: Any) -> bool:
        self.arrived()
        return self.work.wait(*timeout)

    def get_future(self) -> Any:
        self.arrived()  # whoever takes the future gets the tensors from it
        return self.work.get_future()

    def arrived(self) -> None:
        PROCESS.coming = [each for each in PROCESS.coming if each[-1] is not self]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.work, name)


def _batching(function: Any) -> Any:
    @functools.wraps(function)
    def call(*arguments: Any, **named: Any) -> Any:
        THREAD.batch = []
        try:
            result = function(*arguments, **named)
            for handle in THREAD.batch:
                handle.begin()
        finally:
            THREAD.batch = None
        return result

    return call


def _asynchronous(function: Any, name: str) -> Any:
    """Give out a Handle for the work of NCCL; and compute AVG, which gloo has not."""

    @functools.wraps(function)
    def call(*arguments: Any, **named: Any) -> Any:
        group = named.get("group")
        if not dist.is_initialized() or not on_nccl(group):
            return function(*arguments, **named)
        given = list(arguments)
        if any(
            type(each) is type(BY_BITS[0]) and each in BY_BITS for each in (*given, *named.values())
        ):
            raise ValueError(f"Cannot use this ReduceOp with NCCL ({name})")
        for words, op in [(given, i) for i in range(len(given))] + [(named, "op")]:
            if name in AVERAGING and words is given and given[op] == dist.ReduceOp.AVG:
                _average(given, named, name, group)
                given[op] = dist.ReduceOp.SUM
            elif name in AVERAGING and words is named and named.get("op") == dist.ReduceOp.AVG:
                _average(given, named, name, group)
                named["op"] = dist.ReduceOp.SUM
        result = function(*given, **named)
        if isinstance(result, dist.Work):
            return Handle(result, name, _written(name, given, named))
        return result

    return call


def _written(name: str, given: list[Any], named: dict[str, Any]) -> list[torch.Tensor]:
    """The tensors that a collective writes: what it is given first, but for two."""
    if name == "isend":
        return []
    every = [*given, *named.values()]
    return tensors_in(every[1:] if name == "gather" else every[:1])


def _average(given: list[Any], named: dict[str, Any], name: str, group: Any) -> None:
    """Divide what goes in: in place where the result comes out there, else a copy of it."""
    size = dist.get_world_size(group)
    if AVERAGING[name] == 0:
        tensor = given[0] if given else named["tensor"]
        tensor.copy_(tensor / size)
    elif len(given) > 1:
        given[1] = torch.utils._pytree.tree_map(lambda t: t / size, given[1])
    else:
        key = "input" if "input" in named else "input_list"
        named[key] = torch.utils._pytree.tree_map(lambda t: t / size, named[key])


def _then_idle(function: Any) -> Any:
    def call(*arguments: Any, **named: Any) -> Any:
        result = function(*arguments, **named)
        PROCESS.busy = False  # the host waits in a barrier for all that its stream was given
        return result

    return call
