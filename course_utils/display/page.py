"""The page of a notebook: whether somebody watches it, and what is shown only then.

Outputs that change, and cards, are for a page that is open in front of a student. Programs that
execute a notebook to save or compare it (nbclient, nbval, papermill) get plain text alone.
"""

import sys
from typing import Any

# JupyterLab's variables follow its theme; the fallbacks fit light and dark pages of others.
# What is !important stands against JupyterLab's own rules for tables and preformatted text.
STYLE = """
.course-run, .course-card {
  --line: var(--jp-border-color2, #8886); --faint: var(--jp-content-font-color2, #888);
  --raised: var(--jp-layout-color2, #8882); --mono: var(--jp-code-font-family, monospace);
  max-width: 1180px; margin: 4px 0; padding: 8px 10px; box-sizing: border-box;
  border: 1px solid var(--line); border-radius: 4px;
  font: 13px/18px var(--jp-ui-font-family, system-ui, sans-serif);
  color: var(--jp-content-font-color1, inherit); font-variant-numeric: tabular-nums;
}
.course-run pre, .course-card pre {
  margin: 0; padding: 0; background: none; color: inherit; font: 12px/17px var(--mono);
}
.course-lanes { display: grid; gap: 8px 14px;
  grid-template-columns: repeat(auto-fill, minmax(220px, 1fr)); }
.course-few .course-lanes { grid-template-columns: repeat(auto-fit, minmax(190px, 1fr)); }
.course-lane { min-width: 0; border-left: 5px solid var(--rank); padding-left: 8px; }
.course-lane header { display: flex; gap: 8px; height: 18px; overflow: hidden; }
.course-lane header b, .course-rank { white-space: nowrap; }
.course-lane header span { flex: 1; text-align: right; color: var(--faint); font-size: 12px;
  white-space: nowrap; overflow: hidden; text-overflow: ellipsis; }
.course-lane[data-state=waiting] header span, .course-lane[data-state=failed] header span {
  color: inherit; font-weight: 600; }
.course-lane pre { height: calc(var(--lines) * 17px); overflow: hidden; }
.course-lane pre div { font-size: 12px; overflow: hidden; text-overflow: ellipsis;
  white-space: pre; height: 17px; }
.course-foot { display: flex; gap: 16px; align-items: center; height: 60px; margin-top: 8px; }
.course-foot > div { flex: 1; min-width: 0; }
.course-foot p { display: flex; justify-content: space-between; gap: 8px; margin: 4px 0 0;
  white-space: pre; overflow: hidden; }
.course-progress { height: 8px; border-radius: 4px; background: var(--raised);
  overflow: hidden; }
.course-progress div { height: 100%; background: #0072B2; }
.course-curve { flex: none; width: 300px; height: 60px; overflow: visible; }
.course-curve text { font: 11px var(--jp-ui-font-family, sans-serif); fill: var(--faint); }
.course-curve line { stroke: var(--line); }
.course-curve polyline { fill: none; stroke-width: 1.8; stroke-linejoin: round; }
.course-card { border-left: 5px solid var(--kind); }
.course-card header { font-size: 14px; font-weight: 600; overflow-wrap: anywhere; }
.course-card header i { font-style: normal; color: #fff; background: var(--kind);
  border-radius: 3px; padding: 1px 6px; margin-right: 4px; }
.course-card pre { white-space: pre-wrap; overflow-wrap: anywhere; }
.course-card header + pre { padding-top: 6px !important; }
.course-card .course-code { margin: 6px 0 !important; padding: 4px 0 !important;
  background: var(--raised) !important; white-space: pre; overflow-x: auto; }
.course-card .course-code b { display: inline-block; min-width: 100%; background: #E69F0055; }
.course-card details { margin-top: 4px; }
.course-card summary { cursor: pointer; }
.course-card details pre { max-height: 17em; overflow: auto; padding-left: 14px; }
.course-rank { border-left: 5px solid var(--rank); padding-left: 5px; font-weight: 600; }
.course-card table { border-collapse: collapse; margin: 4px 0; }
.course-card td { text-align: left !important; padding: 1px 16px 1px 0 !important; }
"""


def in_notebook() -> bool:
    """Whether this process is a notebook's kernel."""
    return hasattr(_shell(), "kernel")


def watched() -> bool:
    """Whether the running cell is one of an open page, which shows outputs as they change.

    JupyterLab, Notebook and VS Code name the cell in each request to the kernel; programs that
    execute a notebook without a page do not.
    """
    return in_notebook() and "cellId" in _shell().get_parent().get("metadata", {})


def bundle(html: str, plain: str) -> dict[str, str]:
    """An output for a page: HTML, and what is shown where that cannot be."""
    return {"text/html": f"<style>{STYLE}</style>{html}", "text/plain": plain}


def _shell() -> Any:
    """The IPython shell of this process, or None."""
    ipython = sys.modules.get("IPython")
    return ipython and ipython.get_ipython()
