"""Every script of the notebooks that reports claims, with how the notebook starts it."""

import ast
import re
from dataclasses import dataclass

from course_utils import cells, files, paths, proofs
from nbtorchrun.arguments import parse_torchrun, split
from nbtorchrun.errors import InputError
from nbtorchrun.launcher.options import Options
from nbtorchrun.launcher.running import launch_path
from nbtorchrun.runs import Run

FAULTY = paths.ROOT / "tests" / "claims" / "faulty.py"
TIMEOUT, STALL = 120, 20  # seconds: a fault may make ranks wait for each other


@dataclass(frozen=True)
class Start:
    """One call with which a notebook starts a script that reports claims."""

    notebook: str
    file: str
    nproc: int
    arguments: tuple[str, ...]

    def __str__(self) -> str:
        return " ".join([self.file, *self.arguments, f"-n {self.nproc}"])

    def run(self, fault: str = "none") -> Run:
        """Run it with a fault; a run that fails is returned too."""
        named = {f"{word}.py" for word in self.arguments} & cells.sources().keys()
        files.write_missing(self.file, *named)
        arguments = (fault, str(paths.workers() / self.file), *self.arguments)
        return launch_path(FAULTY, arguments, Options(self.nproc, TIMEOUT, STALL, show=False))


def starts() -> list[Start]:
    """The first call of each script whose text has `claim=`, in the order of the notebooks."""
    reporting = {name for name, text in cells.sources().items() if "claim=" in text}
    found: dict[str, Start] = {}
    for path in sorted(paths.NOTEBOOKS.glob("*.ipynb")):
        for cell in cells.read(path)["cells"]:
            if cell["cell_type"] == "code":
                for start in _calls(path.stem, "".join(cell["source"])):
                    if start.file in reporting:
                        found.setdefault(start.file, start)
    return list(found.values())


def _calls(notebook: str, source: str) -> list[Start]:
    """The starts in one cell: its magics, and its calls of `launch`."""
    found = []
    for line in re.findall(r"^%%?torchrun (.*)$", source, re.MULTILINE):
        try:
            options = parse_torchrun(split(line))
        except InputError:
            continue
        found.append(Start(notebook, options.file, options.nproc, tuple(options.arguments)))
    python = "" if source.startswith("%%") else re.sub(r"^%.*$", "", source, flags=re.MULTILINE)
    for node in ast.walk(ast.parse(python)):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "launch":
            named = {word.arg: word.value for word in node.keywords}
            words = [each.value for each in node.args if isinstance(each, ast.Constant)]
            nproc = getattr(named.get("nproc"), "value", None) or 3  # a loop's number: take three
            if words and len(words) == len(node.args):
                found.append(Start(notebook, words[0], nproc, tuple(map(str, words[1:]))))
    return found


def claims_of(run: Run) -> dict[str, tuple[float, float]]:
    """What a run claims: the worst value of any rank, and the bound, by claim."""
    found: dict[str, tuple[float, float]] = {}
    for proof in proofs.reported(run):
        before = found.get(proof.claim, (float("-inf"), proof.bound))[0]
        worse = proof.worst if not proof.worst <= before else before
        found[proof.claim] = (worse, proof.bound)
    return found
