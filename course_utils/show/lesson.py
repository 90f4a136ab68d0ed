"""What one notebook alone needs: the modules in its folder, `lessons/nbNN/`.

The course's folders are not on a kernel's path: nothing but the packages is installed.
"""

from importlib.util import module_from_spec, spec_from_file_location
from types import ModuleType

from course_utils import paths


def lesson(notebook: str, name: str) -> ModuleType:
    """The module `lessons/nbNN/NAME.py` of a notebook, given by its number, as "12"."""
    path = paths.LESSONS / f"nb{notebook}" / f"{name}.py"
    spec = spec_from_file_location(f"lessons.nb{notebook}.{name}", path)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def pictures(notebook: str) -> ModuleType:
    """The functions that draw a notebook's own pictures."""
    return lesson(notebook, "pictures")
