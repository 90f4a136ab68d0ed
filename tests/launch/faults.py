"""What a student can do wrong, and what the verdict has to say: the table of the suite.

Each script begins with `START`; rank 1 is the culprit unless the row says otherwise.
"""

from functools import partial

from tests.launch.fault import ALL_ARE_HERE, OTHERS_WAIT, Fault

raised, exited, killed = (partial(Fault, kinds=(kind,)) for kind in ("raised", "exited", "killed"))
hung, mismatch = (partial(Fault, kinds=(kind,), waits=True) for kind in ("hung", "mismatch"))
stuck = partial(Fault, kinds=("hung", "mismatch"), waits=True)
alone = partial(raised, rank=None, whole=True)  # each rank raises, before it has a process group

# Rank 1 sends before rank 0 receives: when it drops the work, the message is lost.
DROPPED = (
    "large = torch.ones(1_000_000)\n"
    "if rank == 0:\n    time.sleep(0.5)\n    dist.recv(large, 1)\n"
    "elif rank == 1:\n    dist.isend(large, 0)  # here\n"
)
ASKED = (
    "rank 1 called isend to rank 0 (workers/{file}, line 14), and its message has not arrived",
    "Was the work of every isend kept, and waited for?",
)
FAULTS = [
    raised(
        "a rank raises while the others wait",
        "if rank == 1:\n    raise ValueError('bad batch')  # here\ndist.barrier()\n",
        ("rank 1 raised ValueError: bad batch", "The other ranks were stopped because of this"),
    ),
    raised(
        "two ranks raise 5 ms apart",
        "dist.barrier()\n"
        "if rank == 1:\n    raise ValueError('first')  # here\n"
        "log = os.path.join(os.environ['NBTORCHRUN_RUN_DIR'], 'rank_1', 'events.jsonl')\n"
        "while rank == 0 and 'raised' not in open(log).read():  # a busy machine may delay rank 1\n"
        "    time.sleep(0.001)\n"
        "time.sleep(0.005)\n"
        "if rank == 0:\n    raise KeyError('second')\n"
        "time.sleep(60)\n",
        ("rank 1 raised ValueError: first", "After that rank 0 raised KeyError: 'second'"),
    ),
    raised(
        "all ranks raise the same",
        "dist.barrier()\nraise RuntimeError('all of us')  # here\n",
        ("and {last} raised RuntimeError: all of us", "The traceback of rank 0: "),
        rank=0,
    ),
    raised(
        "an exception in a DataLoader's worker",
        "class Broken(torch.utils.data.Dataset):\n"
        "    def __len__(self):\n        return 4\n"
        "    def __getitem__(self, i):\n        raise IndexError('bad item')  # here\n"
        "if rank == 1:\n    list(torch.utils.data.DataLoader(Broken(), num_workers=1))\n"
        "dist.barrier()\n",
        ("rank 1 raised IndexError", "bad item"),
    ),
    raised(
        "an exception in a thread",
        "def work():\n    raise ValueError('in a thread')  # here\n"
        "if rank == 1:\n"
        "    thread = threading.Thread(target=work)\n    thread.start()\n    thread.join()\n"
        "dist.barrier()\n",
        ("rank 1 raised ValueError: in a thread",),
    ),
    raised(
        "an exception in a backward hook",
        "x = torch.ones(2, requires_grad=True)\n"
        "def hook(gradient):\n"
        "    if rank == 1:\n        raise ValueError('in a hook')  # here\n"
        "x.register_hook(hook)\nx.sum().backward()\ndist.barrier()\n",
        ("rank 1 raised ValueError: in a hook",),
    ),
    alone("a syntax error", "x = 1\ndef f(:  # here\n", ("SyntaxError",)),
    alone(
        "a missing module",
        "import no_such_module  # here\n",
        ("No module named 'no_such_module'", "a worker file, has its cell been run"),
    ),
    exited(
        "sys.exit(3)",
        OTHERS_WAIT + "if rank == 1:\n    sys.exit(3)  # here\ndist.barrier()\n",
        ("rank 1 ended with exit status 3", "rank 0 was still waiting at workers/{file}, line 15"),
    ),
    exited(
        "SystemExit with words",
        OTHERS_WAIT
        + "if rank == 1:\n    raise SystemExit('I am done early')  # here\ndist.barrier()\n",
        (
            "rank 1 ended with exit status 1: I am done early",
            "rank 0 was still waiting at workers/{file}, line 15",
        ),
    ),
    exited(
        "os._exit(0) in mid-script",
        OTHERS_WAIT + "if rank == 1:\n    os._exit(0)\ndist.barrier()\n",
        ("rank 1 called `os._exit`", "rank 0 was still waiting at workers/{file}, line 15"),
    ),
    exited(
        "os._exit(0) in every rank",
        ALL_ARE_HERE + "os._exit(0)\n",
        ("and {last} called `os._exit`",),
        rank=0,
        never_said="still waiting",
    ),
    exited(
        "os._exit(0) while the others finish",
        ALL_ARE_HERE + "if rank == 1:\n    os._exit(0)\n",
        ("rank 1 called `os._exit`",),
        never_said="still waiting",
    ),
    exited(
        "os._exit(3) while the others compute",
        ALL_ARE_HERE + "if rank == 1:\n    os._exit(3)\nwhile True:\n    pass\n",
        ("rank 1 called `os._exit`", "The exit status was 3"),
        never_said="still waiting",
    ),
    exited(
        "os._exit(0) while the others compute",
        "dist.all_reduce(tensor)  # here\n"
        + ALL_ARE_HERE
        + "if rank == 1:\n    os._exit(0)\nwhile True:\n    pass\n",
        ("rank 1 called `os._exit`", "The last call was all_reduce #1"),
        never_said="still waiting",
    ),
    exited(
        "falls off the end without the others",
        OTHERS_WAIT + "if rank != 1:\n    dist.all_reduce(tensor)\n",
        ("rank 1 reached the end", "rank 0 was still waiting at workers/{file}, line 14"),
    ),
    killed(
        "SIGKILL",
        "if rank == 1:\n    os.kill(os.getpid(), signal.SIGKILL)\ndist.barrier()\n",
        ("rank 1 was killed by SIGKILL", "memory ran out"),
    ),
    killed(
        "SIGSEGV, which the other ranks call a lost connection",
        "import ctypes\nif rank == 1:\n    ctypes.string_at(0)\ntry:\n    dist.barrier()\n"
        "except RuntimeError as error:\n    raise ConnectionError('rank 1 is gone') from error\n",
        ("rank 1 was killed by SIGSEGV",),
    ),
    killed(
        "SIGABRT",
        "if rank == 1:\n    os.abort()\ndist.barrier()\n",
        ("rank 1 was killed by SIGABRT", "tensors of the same size"),
    ),
    killed(
        "aborts after the last line, as torch 2.15 may",
        "import atexit, glob\n"
        "def abort():\n"
        "    log = os.environ['NBTORCHRUN_RUN_DIR'] + '/rank_*/events.jsonl'\n"
        "    while not all('finished' in open(path).read() for path in glob.glob(log)):\n"
        "        time.sleep(0.01)\n"
        "    os.abort()\n"
        "if rank == 1:\n    atexit.register(abort)\n",
        ("rank 1 was killed by SIGABRT after the last line of the script", "init()"),
        never_said="same size",
    ),
    Fault(
        "a message to a rank that does not exist",
        "if rank == 1:\n    dist.send(tensor, world)  # here\ndist.barrier()\n",
        ("rank 1 called send to rank {world}", "there is no rank {world}", "% world_size"),
        kinds=("killed", "hung"),
        waits=True,
    ),
    raised(
        "out of memory",
        "import resource\n"
        "if rank == 1:\n"
        "    resource.setrlimit(resource.RLIMIT_AS, (2**33, 2**33))\n"
        "    torch.empty(2**40)  # here\n"
        "dist.barrier()\n",
        ("rank 1 raised RuntimeError", "not enough memory"),
    ),
    hung(
        "a rank sleeps forever",
        "if rank == 1:\n    time.sleep(1000)  # here\ndist.barrier()\n",
        ("rank 0 waits in barrier #1", "rank 1 never got to where the others are waiting"),
    ),
    hung(
        "a rank is stopped",
        "if rank == 1:\n    os.kill(os.getpid(), signal.SIGSTOP)\ndist.barrier()\n",
        ("rank 1 was stopped by a signal", "rank 1 never got to where the others are waiting"),
    ),
    stuck(
        "different collectives",
        "if rank == 1:\n    dist.barrier()  # here\nelse:\n    dist.all_reduce(tensor)\n",
        ("rank 1", "barrier", "line 10", "all_reduce", "line 12"),
    ),
    stuck(
        "another order",
        "other = torch.ones(2)\n"
        "if rank == 1:\n    dist.broadcast(other, 0)  # here\n    dist.all_reduce(tensor)\n"
        "else:\n    dist.all_reduce(tensor)\n    dist.broadcast(other, 0)\n",
        ("rank 1", "broadcast", "line 11", "all_reduce", "line 14"),
    ),
    stuck(
        "a different number of times",
        "for _ in range(3 + (rank != 1)):\n    dist.all_reduce(tensor)\n"
        "time.sleep(1000 if rank == 1 else 0)  # here\n",
        ("rank 0 waits in all_reduce #4", "rank 1 never got to"),
    ),
    mismatch(
        "different shapes",
        "dist.all_reduce(torch.ones(3 if rank == 1 else 4))  # here\n",
        ("rank 1: all_reduce of [3] torch.float32", "all_reduce of [4] torch.float32"),
    ),
    mismatch(
        "different dtypes",
        "dist.all_reduce(torch.ones(4, dtype=torch.int32 if rank == 1 else None))  # here\n",
        ("rank 1: all_reduce of [4] torch.int32", "all_reduce of [4] torch.float32"),
    ),
    hung(
        "two blocking sends face each other",
        "large = torch.ones(10_000_000)\n"
        "if rank < 2:\n"
        "    dist.send(large, 1 - rank)  # here\n    dist.recv(large, 1 - rank)\n",
        ("rank 0 waits in send to rank 1", "rank 0 -> rank 1 -> rank 0", "batch_isend_irecv"),
        rank=0,
    ),
    hung(
        "the work of an isend is dropped",
        DROPPED + "    dist.recv(large, 0)\n",
        ("the run hangs", "rank 0 waits in recv from rank 1", *ASKED),
    ),
    exited(
        "the work of an isend is dropped, and then the script ends",
        DROPPED,
        ("rank 0 was still waiting at workers/{file}, line 12", *ASKED),
    ),
    hung(
        "recv from a rank that never sends",
        "if rank == 1:\n    dist.recv(tensor, 0)\nelse:\n    time.sleep(1000)  # here\n",
        ("rank 1 waits in recv from rank 0", "rank 0 is at"),
        rank=0,
    ),
    raised(
        "a parameter that takes no part, under DDP",
        "class Model(torch.nn.Module):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.used = torch.nn.Linear(2, 2)\n"
        "        self.forgotten = torch.nn.Linear(2, 2)\n"
        "    def forward(self, x):\n        return self.used(x)\n"
        "model = DDP(Model())\n"
        "for step in range(2):\n"
        "    model(torch.ones(1, 2)).sum().backward()  # here\n",
        ("forgotten.weight", "find_unused_parameters=True"),
        rank=0,
    ),
    exited(
        "an uneven number of batches",
        "model = DDP(torch.nn.Linear(2, 2))\n"
        "for batch in range(2 if rank == 1 else 3):\n"
        "    model(torch.ones(1, 2)).sum().backward()\n",
        ("rank 1 reached the end", "the same number of batches", "line 11"),
        waits=True,  # with torch 2.11 nobody tells rank 0
    ),
    exited(
        "falls off the end, and leaves its own process group open",
        "import torch, torch.distributed as dist\n"
        "dist.init_process_group('gloo')\n"
        "dist.barrier()\n"
        "if dist.get_rank() != 1:\n    dist.all_reduce(torch.ones(4))\n",
        ("rank 1 reached the end", "rank 0 was still waiting at workers/{file}, line 5"),
        whole=True,
    ),
    exited(
        "comes to its end early and aborts there, as gloo may",
        OTHERS_WAIT + "import atexit\n"
        "if rank == 1:\n    atexit.register(os.abort)\nelse:\n    dist.all_reduce(tensor)\n",
        ("rank 1 reached the end", "rank 0 was still waiting at workers/{file}, line 17"),
    ),
    alone(
        "no process group",
        "import torch, torch.distributed as dist\ndist.all_reduce(torch.ones(1))  # here\n",
        ("has not been initialized", "from nbtorchrun.worker import init; init()"),
    ),
    alone(
        "NCCL without GPUs",
        "import os\nos.environ['CUDA_VISIBLE_DEVICES'] = ''\n"
        "import torch.distributed as dist\ndist.init_process_group('nccl')  # here\n",
        ("NCCL needs a GPU for each rank", 'init_process_group("gloo")'),
    ),
    Fault(
        "a rank beyond the world",
        "import torch.distributed as dist\n"
        "dist.init_process_group('gloo', rank=7, world_size=2)  # here\n",
        ("leave rank= and world_size= out",),
        kinds=("raised", "hung"),
        rank=None,
        waits=True,
        whole=True,
    ),
    alone(
        "reads stdin",
        "input('name? ')  # here\n",
        ("EOFError", "no terminal to read from"),
    ),
]
