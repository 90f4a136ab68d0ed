"""`./run.sh site`: build the web site."""

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from nbtorchrun.errors import InputError
from website import finish, pages

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
ENGLISH = "en"
MARK = ".nojekyll"  # GitHub Pages leaves out folders such as _static otherwise
SOURCE = ROOT / "build" / "site-source"


def languages() -> list[str]:
    """English, which lies at the top of the site, and each language that has a translation."""
    return [ENGLISH, *sorted(path.name for path in (HERE / "locale").iterdir() if path.is_dir())]


def parser() -> argparse.ArgumentParser:
    """The options of `./run.sh site`."""
    about = "Build the web site from the outputs saved in the notebooks. Nothing is executed."
    made = argparse.ArgumentParser(prog="./run.sh site", description=about, allow_abbrev=False)
    made.add_argument(
        "--output", type=Path, default=ROOT / "build" / "site", help="a folder; it is replaced"
    )
    made.add_argument(
        "--language",
        choices=languages(),
        help="only this one; otherwise English, and each translation in a folder of its own",
    )
    made.add_argument(
        "--templates",
        action="store_true",
        help="write what there is to translate into build/site-templates, and build nothing",
    )
    return made


def main() -> int:
    """Build what the options ask for; return the exit status."""
    options = parser().parse_args()
    try:
        pages.write(SOURCE)
    except InputError as error:
        print(f"run.sh: {error}", file=sys.stderr)
        return 2
    if options.templates:
        return sphinx("gettext", ENGLISH, ROOT / "build" / "site-templates")
    output = options.output.resolve()
    if any(output.glob("*")) and not (output / MARK).exists():
        print(
            f"run.sh: {output} holds something other than a site: name an empty folder, or one "
            "that does not exist",
            file=sys.stderr,
        )
        return 2
    shutil.rmtree(output, ignore_errors=True)
    output.mkdir(parents=True)
    (output / MARK).touch()
    wanted = [options.language] if options.language else languages()
    for language in wanted:
        twins = len(wanted) > 1 and language != ENGLISH  # of the English pages, but for a few
        folder = ROOT / "build" / f"site-{language}" if twins else output
        only = [f"{SOURCE / page}.md" for page in finish.translated(language)] if twins else []
        listed = ("-A", f"languages={' '.join(wanted)}")
        if status := sphinx("html", language, folder, *listed, only=only):
            return status
        if twins:
            finish.take_translated(folder, output, language)
        else:
            finish.tidy(output)
    print(f"The site is in {output}: open index.html there.")
    return 0


def sphinx(
    builder: str, language: str, output: Path, *options: str, only: Iterable[str] = ()
) -> int:
    """Run Sphinx over the pages; a warning, such as a link that leads nowhere, is an error.

    With `only`, no other pages are written.
    """
    # All pages are read anew (-E): pictures lie beside the output, and those of an earlier build
    # may be gone with its folder.
    command = [sys.executable, "-m", "sphinx", "-E", "-q", "-W", "--keep-going", "-j", "auto"]
    command += [*options, "-b", builder, "-c", str(HERE), "-D", f"language={language}"]
    command += ["-d", str(ROOT / "build" / f"site-{builder}-{language}"), str(SOURCE), str(output)]
    command += only
    return subprocess.call(command, cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT)})


if __name__ == "__main__":
    sys.exit(main())
