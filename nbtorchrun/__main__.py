"""`python -m nbtorchrun train.py -n 2`: a run in a terminal, with its verdict."""

import argparse
import sys

from nbtorchrun.display.console import show_failure
from nbtorchrun.errors import InputError, LaunchError
from nbtorchrun.launcher.options import add_flags, flags
from nbtorchrun.launching import launch

EPILOG = "The script gets what follows its name, without the options above; after -- everything."


def main(words: list[str]) -> int:
    """Run a script; return 0, 1 where the run fails, 2 for a bad call, 130 after Ctrl-C."""
    parser = argparse.ArgumentParser(prog="python -m nbtorchrun", epilog=EPILOG, allow_abbrev=False)
    add_flags(parser)
    parser.add_argument("script", help="a Python file")
    cut = words.index("--") if "--" in words else len(words)
    options, arguments = parser.parse_known_args(words[:cut])
    arguments += words[cut + 1 :]
    try:
        run = launch(options.script, *arguments, check=False, **flags(options))
    except InputError as error:
        print(f"nbtorchrun: {error}", file=sys.stderr)
        return 2
    except LaunchError as error:  # no rank was started
        print(f"nbtorchrun: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt as stop:
        print(f"\n{stop}", file=sys.stderr)
        return 130
    if not run.ok:
        show_failure(run)
    return 0 if run.ok else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
