"""Scripts from public bug reports that a launcher easily tells the wrong story about."""

from functools import partial

from tests.launch.fault import Fault

raised, exited = (partial(Fault, kinds=(kind,)) for kind in ("raised", "exited"))

ROUGH = [
    raised(
        "an exception that is its own cause",
        "try:\n    int('x') if rank == 1 else 0  # here\n"
        "except ValueError as e:\n    raise e from e\n"
        "dist.barrier()\n",
        ("rank 1 raised ValueError: invalid literal",),
    ),
    raised(
        "an exception in a ring of contexts",
        "a, b = ValueError('a'), KeyError('b')\na.__context__, b.__context__ = b, a\n"
        "if rank == 1:\n    raise a  # here\ndist.barrier()\n",
        ("rank 1 raised ValueError: a",),
    ),
    raised(
        "an exception whose str fails",
        "class Odd(Exception):\n    def __str__(self):\n        return {}\n"
        "if rank == 1:\n    raise Odd  # here\ndist.barrier()\n",
        ("rank 1 raised Odd: <exception str() failed>",),
    ),
    raised(
        "print is silenced, and stderr is closed",
        "import builtins\nbuiltins.print = lambda *a, **k: None\nsys.stderr.close()\n"
        "if rank == 1:\n    raise ValueError('heard')  # here\ndist.barrier()\n",
        ("rank 1 raised ValueError: heard",),
    ),
    raised(
        "characters that Python takes for no line's end",
        "# \x0c\ntext = 'a\u2028b\x85c'\n"
        "if rank == 1:\n    raise ValueError  # here\ndist.barrier()\n",
        ("  >   12      raise ValueError  # here\n      13  dist.barrier()",),
    ),
    raised(
        "a message of 5 MB",
        "if rank == 1:\n    raise ValueError('x' * 5_000_000)  # here\ndist.barrier()\n",
        ("rank 1 raised ValueError: xxx", "xxx... (5,000,012 characters; the log has all)"),
    ),
    raised(
        "a debugger without a terminal",
        "if rank == 1:\n    breakpoint()\n    x = 1  # here\ndist.barrier()\n",
        ("rank 1 raised BdbQuit", "a debugger cannot stop in it: print what you want to see"),
    ),
    exited(
        "os.execv",
        "if rank == 1:\n    os.execvp('true', ['true'])\ndist.barrier()\n",  # which calls os.execv
        ("rank 1 called `os.execv`", "another program, /"),
        never_said="os._exit",
    ),
    raised(
        "an error of the net that is no collective's",
        "import urllib.request\n"
        "if rank == 1:\n    urllib.request.urlopen('http://127.0.0.1:9')  # here\n",
        ("rank 1 raised URLError",),
    ),
    raised(
        "a broken pipe that is no collective's",
        "if rank == 1:\n    raise BrokenPipeError('connection closed by peer')  # here\n",
        ("rank 1 raised BrokenPipeError",),
    ),
    Fault(
        "gloo gives up while a rank sleeps",
        "from datetime import timedelta\n"
        "short = dist.new_group(timeout=timedelta(seconds=1))\n"
        "if rank == 1:\n    time.sleep(20)  # here\ndist.all_reduce(tensor, group=short)\n",
        ("gave up after 1 s in all_reduce #1", "rank 1 never got there"),
        kinds=("hung",),
    ),
    Fault(
        "each rank broadcasts its own",
        "dist.broadcast(tensor, src=1 if rank == 1 else 0)  # here\n",
        ("the ranks called collective", "with another src", "src=1"),
        kinds=("mismatch",),
        waits=True,
    ),
    Fault(
        "ranks that reduce by different operations",
        "op = dist.ReduceOp.MAX if rank == 1 else dist.ReduceOp.SUM\n"
        "dist.all_reduce(tensor, op=op)  # here\n"
        "time.sleep(1000)\n",
        ("with another op", "rank 1: all_reduce of [4] torch.float32, op=max"),
        kinds=("mismatch",),
        waits=True,
    ),
    Fault(
        "a functional collective with different sizes",
        "import torch.distributed._functional_collectives as functional\n"
        "x = torch.ones(3 if rank == 1 else 4)\n"
        "x = functional.all_reduce(x, 'sum', dist.group.WORLD)  # here\n"
        "x = x + 1\n",
        ("rank 1: all_reduce of [3] torch.float32",),
        kinds=("mismatch",),
        waits=True,
    ),
    Fault(
        "another MASTER_PORT",
        "import os, torch.distributed as dist\n"
        "if os.environ['RANK'] == '1':\n    os.environ['MASTER_PORT'] = '9'\n"
        "dist.init_process_group('gloo')\n",
        ("rank 1 looked for the other ranks at 127.0.0.1:9",),
        kinds=("hung", "raised"),
        waits=True,
        whole=True,
    ),
]
# Scripts that do nothing wrong.
FINE = {
    "another rank in the environment": "os.environ['RANK'] = os.environ['LOCAL_RANK'] = '0'\n",
    "a closed stdout": "sys.stdout.close()\n",
    "no stdout": "sys.stdout = None\n",
    "a child that exits": "if os.fork() == 0:\n    sys.exit(3)\nos.wait()\ndist.barrier()\n",
    "a child that comes to the end": "if os.fork():\n    os.wait()\n    dist.barrier()\n",
    "work where an error was caught": (
        "try:\n    import no_such_module\nexcept ImportError:\n"
        "    for _ in range(3):\n        dist.all_reduce(tensor)\n"
    ),
    "an error that means to end the script": (
        "try:\n    raise StopAsyncIteration if rank else KeyError\n"
        "except Exception:\n    dist.barrier()\n    sys.exit(0)\n"
    ),
    "a thread's error, which the script deals with": (
        "threading.excepthook = print\nthread = threading.Thread(target=int, args=('x',))\n"
        "thread.start()\nthread.join()\ndist.barrier()\n"
    ),
    "status 256": "sys.exit(256)\n",
    "one rank that a broadcast starts from, named twice": (
        "dist.broadcast(tensor, **({'src': 0} if rank else {'group_src': 0}))\n"
    ),
}
