"""Packages without any file, and a course that pip can build from one of them."""

import zipfile
from pathlib import Path

BACKEND = """
import shutil
def build_editable(folder, config_settings=None, metadata_directory=None):
    return shutil.copy("course-1-py3-none-any.whl", folder).rpartition("/")[2]
"""
BUILD = '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'


def wheel(folder: Path, name: str, version: str, *needs: str) -> None:
    """A package without any file."""
    info = f"{name.replace('-', '_')}-{version}"
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    metadata += "".join(f"Requires-Dist: {need}\n" for need in needs)
    with zipfile.ZipFile(folder / f"{info}-py3-none-any.whl", "w") as archive:
        archive.writestr(f"{info}.dist-info/METADATA", metadata)
        tags = "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        archive.writestr(f"{info}.dist-info/WHEEL", tags)
        archive.writestr(f"{info}.dist-info/RECORD", "")


def uv_wheel(folder: Path, program: str) -> None:
    """A package of the version that run.sh asks for, whose uv is `program`."""
    wheel(folder, "uv", "0.13.9")
    with zipfile.ZipFile(folder / "uv-0.13.9-py3-none-any.whl", "a") as archive:
        entry = zipfile.ZipInfo("uv-0.13.9.data/scripts/uv")
        entry.external_attr = 0o100755 << 16  # a file that may be run
        archive.writestr(entry, program)
