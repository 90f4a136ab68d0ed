"""Side-by-side timings: each benchmark is a module with `run() -> Table`."""

import json
from importlib import import_module
from pathlib import Path

from nbtorchrun import settings
from nbtorchrun.errors import InputError
from tools.near_miss import suggestion

BENCHMARKS = sorted(path.stem for path in Path(__file__).parent.glob("[a-z]*.py"))


def run(name: str | None) -> int:
    """Run one benchmark, or all; print its table and write it as JSON; return the exit status."""
    if name is not None and name not in BENCHMARKS:
        meant = suggestion(name, BENCHMARKS) or f"; choose one of {', '.join(BENCHMARKS)}"
        raise InputError(f"there is no benchmark {name!r}{meant}")
    for chosen in [name] if name else BENCHMARKS:
        print(f"benchmark {chosen} ...", flush=True)
        module = import_module(f"benchmarks.{chosen}")
        result = module.run()
        print(module.table(result))
        path = settings.runs() / f"bench-{chosen}.json"
        path.write_text(json.dumps(result, indent=1) + "\n")
        print(f"as JSON: {path}")
    return 0
