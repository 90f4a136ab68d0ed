"""What a run's end must not get wrong: errors being handled, waits inside libraries, and lives on.

By kind. The first of each kind is tried cold, too.
"""

import itertools
from functools import partial

from tests.launch.fault import Fault

raised, exited = (partial(Fault, kinds=(kind,)) for kind in ("raised", "exited"))
late = partial(Fault, kinds=("raised",), waits=True)
hung, mismatch = (partial(Fault, kinds=(kind,), waits=True) for kind in ("hung", "mismatch"))

BAD = (
    "    if rank == 1:\n        raise ValueError('bad batch')  # here\n"
    "    dist.all_reduce(tensor)\n"
)
TRIES = f"try:\n{BAD}"
UNMARKED = TRIES.replace("  # here", "")
NAMED = "rank 1 raised ValueError: bad batch"
STILL = "Rank 1 was still handling this error, in `{}`: it {}"
# Rank 1 raises in step 2, when all are connected and have just met.
IN_A_LOOP = (
    "try:\n    for step in range(5):\n        if rank == 1 and step == 2:\n"
    "            raise ValueError('bad batch')  # here\n        dist.all_reduce(tensor)\n"
)
OVER_A_GENERATOR = (
    "def batches():\n    try:\n        yield from range(4)\n    finally:\n        dist.barrier()\n"
    "for batch in batches():\n    {}\n    dist.all_reduce(tensor)\n"
)
IN_THE_GENERATOR = STILL.format("finally", "waited in barrier #1 (workers/fault.py, line 13)")
HANDLING = [
    late(
        "finally: a barrier that the others do not reach",
        f"{TRIES}finally:\n    dist.barrier()\n    dist.destroy_process_group()\n",
        (NAMED, STILL.format("finally", "waited in barrier #1 (workers/fault.py, line 14)")),
        never_said="as different functions",
    ),
    late(
        "except: a barrier that the others do not reach",
        f"{TRIES}except Exception:\n    dist.barrier()\n    raise\n",
        (NAMED, STILL.format("except", "waited in barrier #1 (workers/fault.py, line 14)")),
        never_said="as different functions",
    ),
    late(
        "__exit__: a barrier that the others do not reach",
        "class Group:\n    def __enter__(self):\n        pass\n"
        "    def __exit__(self, *error):\n        dist.barrier()\n"
        f"with Group():\n{BAD}",
        (NAMED, STILL.format("with", "waited in barrier #1 (workers/fault.py, line 13)")),
        never_said="as different functions",
    ),
    late(
        "a generator's finally: an error leaves the loop over it, and closes it",
        OVER_A_GENERATOR.format("if rank == 1: raise ValueError('bad batch')  # here"),
        (NAMED, IN_THE_GENERATOR),
        never_said="as different functions",
    ),
    late(  # up to Python 3.11, which error is not known before the generator is closed
        "a generator's finally: an error that C raised leaves the loop over it",
        OVER_A_GENERATOR.format("1 / (rank - 1)  # here"),
        ("rank 1 raised", IN_THE_GENERATOR),
        never_said="as different functions",
    ),
    mismatch(
        "a generator's finally: a break closes it, and an error of before was kept",
        "try:\n    open('none')\nexcept OSError as error:\n    kept = error\n"
        + OVER_A_GENERATOR.format("if rank == 1: break"),
        ("as different functions", "rank 1: barrier"),
        never_said="raised",
    ),
    late(
        "finally: it waits for something that is no collective",
        f"{TRIES}finally:\n    threading.Event().wait()\n",
        (NAMED, STILL.format("finally", "was at workers/fault.py, line 14")),
        never_said="never got to",
    ),
    raised(
        "finally: the group ends, so the others lose their connections first",
        f"{IN_A_LOOP}finally:\n    dist.destroy_process_group()\n    time.sleep(0.5)\n",
        (NAMED,),
    ),
    raised(
        "except: the group ends, and another error follows",
        f"{UNMARKED}except Exception as error:\n    dist.destroy_process_group()\n"
        "    time.sleep(0.5)\n    raise RuntimeError('training failed') from error  # here\n",
        ("rank 1 raised RuntimeError: training failed", "It came from ValueError: bad batch"),
        never_said="After that",
    ),
    raised(
        "finally: the others' next call is met first",
        IN_A_LOOP.replace(
            "        dist.all",
            "        if step == 2:\n            dist.barrier()\n        dist.all",
        )
        + "finally:\n    dist.barrier()\n    dist.destroy_process_group()\n",
        (NAMED,),
    ),
    raised(
        "another rank fails later, while the first still handles its error",
        "try:\n    if rank == 1:\n        raise ValueError('bad batch')  # here\n"
        "    if rank == 0:\n        time.sleep(1)\n        raise KeyError('later')\n"
        "    dist.all_reduce(tensor)\n"
        "finally:\n    time.sleep(1000 if rank == 1 else 0)\n",
        (NAMED, "After that rank 0 raised KeyError: 'later'"),
    ),
    raised(
        "finally: os._exit(0)",
        f"{TRIES}finally:\n    os._exit(0)\n",
        (NAMED, STILL.format("finally", "called `os._exit` (workers/fault.py, line 14)")),
        never_said="The last call was",
    ),
    raised(
        "except: os._exit(status=1)",
        f"{TRIES}except ValueError as error:\n    print(error)\n    os._exit(status=1)\n",
        (NAMED, STILL.format("except", "called `os._exit` (workers/fault.py, line 15)")),
    ),
    raised(
        "finally: sys.exit(0)",
        f"{TRIES}finally:\n    sys.exit(0)\n",
        (NAMED, STILL.format("finally", "called `sys.exit` (workers/fault.py, line 14)")),
    ),
    exited(
        "except: sys.exit with words",
        f"{UNMARKED}except ValueError:\n    sys.exit('cannot read it')  # here\n",
        ("ended with exit status 1: cannot read it", "ValueError: bad batch (workers/fault.py"),
    ),
    hung(
        "all ranks work where they have caught an error, and one sleeps",
        "try:\n    import no_such_module\nexcept ImportError:\n"
        "    time.sleep(1000 if rank == 1 else 0)  # here\n    dist.barrier()\n",
        ("rank 0 waits in barrier #1", "rank 1 never got to where the others are waiting"),
        never_said="no_such_module",
    ),
    late(
        "a thread's error goes to the script's own excepthook, and a rank waits for the thread",
        "threading.excepthook = lambda raised: print(raised.exc_type)\nloaded = threading.Event()\n"
        "def load():\n    {}['missing']  # here\n    loaded.set()\n"
        "if rank == 1:\n    threading.Thread(target=load, name='loader').start()\n"
        "    loaded.wait()\ndist.barrier()\n",
        ("rank 1 raised KeyError: 'missing'", "It ended the thread loader."),
        never_said="never got to",
    ),
]
STEP = (
    "model = DDP(torch.nn.Linear(2, 2))\n"
    "def step():\n    model(torch.ones(1, 2)).sum().backward()\n"
)
LEAVES = "for i in range(5):\n    if rank == 1 and i == 3:\n        break\n    {}\n"
LEFT = "rank 1 has left the loop at workers/fault.py, line {}"
SHARDED = (
    "from torch.distributed.tensor import Shard, distribute_tensor\n"
    "from torch.distributed.device_mesh import init_device_mesh\n"
    "mesh = init_device_mesh('cpu', (world,))\n"
    "sharded = distribute_tensor(torch.ones(8), mesh, [Shard(0)])\n"
)
SAVES = (
    "import torch.distributed.checkpoint as dcp\n"
    "folder = os.environ['NBTORCHRUN_RUN_DIR'] + '/checkpoint'\n"
)
IN_LIBRARIES = [
    hung(
        "a rank leaves the loop of a DDP training, and waits in a barrier",
        f"{STEP}{LEAVES.format('step()')}dist.barrier()  # here\n",
        (
            "rank 0 waits in all_reduce (workers/fault.py, line 11)",
            "rank 1 waits in barrier #1",
            LEFT.format(12),
            "Do all ranks make the same number of steps",
        ),
        never_said="never got to",
    ),
    hung(
        "a rank leaves the loop of an FSDP training, and waits in a barrier",
        "from torch.distributed.fsdp import fully_shard\nmodel = torch.nn.Linear(8, 8)\n"
        f"fully_shard(model)\n{LEAVES.format('model(torch.ones(1, 8)).sum().backward()')}"
        "dist.barrier()  # here\n",
        ("rank 0 waits in ", "line 15)", "rank 1 waits in barrier #1", LEFT.format(12)),
        never_said="never got to",
    ),
    mismatch(
        "a rank leaves a loop of collectives, and waits in a barrier",
        f"{LEAVES.format('dist.all_reduce(tensor)')}dist.barrier()  # here\n",
        ("the ranks called collective #4 as different functions", LEFT.format(9)),
    ),
    hung(
        "a rank sleeps while the others wait in DDP's backward",
        f"{STEP}time.sleep(1000 if rank == 1 else 0)  # here\nstep()\n",
        ("rank 0 waits in all_reduce", "rank 1 never got to where the others are waiting"),
    ),
    hung(
        "a rank sleeps while another waits for its work",
        "if rank == 1:\n    time.sleep(1000)  # here\n"
        "dist.all_reduce(tensor, async_op=True).wait()\n",
        ("rank 0 waits in all_reduce (workers/fault.py, line 11)", "rank 1 never got to"),
    ),
    hung(
        "a rank begins a collective and then sleeps",
        "work = dist.all_reduce(tensor, async_op=True) if rank == 1 else None\n"
        "time.sleep(1000)  # here\n",
        ("rank 1 is at workers/fault.py, line 10",),
        rank=0,
        never_said="rank 1 waits",
    ),
    hung(
        "one rank asks for a full tensor",
        f"{SHARDED}if rank == 1:\n    sharded.full_tensor().sum().item()  # here\ndist.barrier()\n",
        ("rank 1 waits in all_gather", "rank 0 waits in barrier #1"),
        never_said="never got to",
    ),
    hung(
        "one rank makes a group",
        "if rank == 1:\n    dist.new_group()  # here\ndist.barrier()\n",
        ("rank 1 waits in new_group", "rank 0 waits in barrier #1"),
        never_said="never got to",
    ),
    mismatch(
        "one rank saves a checkpoint, and the library makes its calls in a thread",
        f"{SAVES}if rank == 1:\n"
        "    dcp.async_save({'x': tensor}, checkpoint_id=folder).result()  # here\n"
        "dist.barrier()\n",
        ("rank 1: ", "(workers/fault.py, line 12)", "barrier (workers/fault.py, line 13)"),
        never_said="None",
    ),
    mismatch(
        "a mismatch is certain, though a thread computes and prints",
        "def talk():\n    while True:\n        print(sum(range(1_000_000)))\n"
        "        time.sleep(0.2)\n"
        "threading.Thread(target=talk, daemon=True).start()\n"
        "if rank == 1:\n    dist.barrier()  # here\nelse:\n    dist.all_reduce(tensor)\n"
        "time.sleep(1000)\n",
        ("the ranks called collective #1 as different functions",),
    ),
    exited(
        "a rank ends, and its model holds the group open",
        f"{STEP}{LEAVES.format('step()')}",
        ("rank 1 reached the end of the script while other ranks were still waiting for it",),
        never_said="hangs",
    ),
]
KEEPS = "ended the script, but {} keeps Python running"
LIVES_ON = [
    hung(
        "a thread goes on after the last line",
        "def upload():\n    threading.Event().wait()  # here\n"
        "threading.Thread(target=upload, name='uploader').start()\n",
        (KEEPS.format("the thread `uploader` (workers/fault.py, line 10)"),),
        rank=0,
        never_said="had ended\n",
    ),
    hung(
        "a pool's thread goes on after the last line",
        "from concurrent.futures import ThreadPoolExecutor\n"
        "pool = ThreadPoolExecutor(1, thread_name_prefix='saver')\n"
        "pool.submit(time.sleep, 1000)  # here\n",
        (KEEPS.format("the thread `saver_0` (started at workers/fault.py, line 11)"),),
        rank=0,
    ),
    hung(
        "a child process goes on after the last line",
        "from multiprocessing import get_context\n"
        "child = get_context('fork').Process(target=time.sleep, args=(1000,), name='uploader')\n"
        "child.start()  # here\n",
        (KEEPS.format("the child process `uploader` (started at workers/fault.py, line 11)"),),
        rank=0,
    ),
    hung(
        "an exit handler blocks",
        "import atexit, queue\ninbox = queue.Queue()\n"
        "def flush():\n    inbox.get()  # here\natexit.register(flush)\n",
        (KEEPS.format("an exit handler (workers/fault.py, line 12)"),),
        rank=0,
    ),
]
met = partial(hung, whole=True, rank=1)
NUMBERS = [
    met(
        "each rank is rank 0 by a variable",
        "import os\nos.environ['SLURM_PROCID'] = '0'\n"
        "os.environ['RANK'] = os.environ['SLURM_PROCID']  # here\n"
        "import torch.distributed as dist\ndist.init_process_group('gloo')\n",
        (
            "joined the group as rank 0",
            "The group waits for rank",
            "In rank 1 the variable RANK is 0, set at workers/fault.py, line 3. torchrun had set 1",
        ),
    ),
    met(
        "each rank is rank 0 by an argument",
        "import os, torch.distributed as dist\nworld = int(os.environ['WORLD_SIZE'])\n"
        "dist.init_process_group('gloo', rank=0, world_size=world)  # here\n",
        ("joined the group as rank 0", "Rank 1 passes rank=0. torchrun had set 1."),
    ),
    met(
        "the ranks wait for others that nobody started",
        "import os\nos.environ.update(WORLD_SIZE='6')  # here\n"
        "import torch.distributed as dist\ndist.init_process_group('gloo')\n",
        ("and 5, which nobody started", "the variable WORLD_SIZE is 6"),
        rank=0,
    ),
]
SPAWNS = [
    raised(
        "a child process is spawned without a main guard",
        "from multiprocessing import get_context\n"
        "def work():\n    pass\n"
        "child = get_context('spawn').Process(target=work)\nchild.start()\nchild.join()\n"
        "if child.exitcode:\n    raise OSError(f'process {child.pid} failed')  # here\n",
        ("finished its bootstrapping phase", 'processes under if __name__ == "__main__":'),
        rank=None,
        whole=True,
        never_said="After that",
    ),
]
KINDS = HANDLING, IN_LIBRARIES, LIVES_ON, NUMBERS, SPAWNS
SUBTLE = list(itertools.chain(*KINDS))
FIRST_OF_EACH = [kind[0] for kind in KINDS]
