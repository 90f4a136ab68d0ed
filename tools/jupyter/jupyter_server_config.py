"""Where JupyterLab finds the course's style: settings in JSON can't name their own folder."""

from pathlib import Path

c = get_config()  # noqa: F821 - JupyterLab provides it
c.ServerApp.tornado_settings = {"static_custom_path": [str(Path(__file__).parent / "custom")]}
