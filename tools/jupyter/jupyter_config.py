"""Names the file of a setting that keeps JupyterLab from starting: Jupyter itself does not.

JupyterLab runs this file when it starts. It reads the user's own settings, and changes none.
"""

import ast
import json
import sys
from collections.abc import Iterator
from pathlib import Path

from jupyter_core.paths import jupyter_config_path
from traitlets.utils.importstring import import_item

NAMES = ("jupyter_config", "jupyter_server_config", "jupyter_lab_config", "jupyter_notebook_config")


def settings(path: Path) -> Iterator[tuple[str, object]]:
    """The settings in a file, such as ("ServerApp.contents_manager_class", "package.Manager")."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".json":
        for section, values in json.loads(text).items():
            yield from ((f"{section}.{name}", value) for name, value in dict(values).items())
        return
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
            for target in node.targets:
                yield ast.unparse(target).removeprefix("c."), node.value.value


def wrong() -> Iterator[str]:
    """A sentence for each setting that names a class which cannot be imported."""
    files = [Path(folder) / name for folder in jupyter_config_path() for name in NAMES]
    for path in (each.with_suffix(kind) for each in files for kind in (".py", ".json")):
        try:
            found = list(settings(path))
        except (OSError, ValueError, SyntaxError, TypeError):
            continue  # not there; or Jupyter itself names the file that it cannot read
        for name, value in found:
            if name.endswith("_class") and isinstance(value, str):
                try:
                    import_item(value)
                except Exception as error:
                    yield (
                        f"run.sh: {path} sets {name} to {value}, which cannot be imported "
                        f"({error}): install what it is part of, or remove that setting."
                    )


if found := "\n".join(wrong()):
    sys.exit(found)
