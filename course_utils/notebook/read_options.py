"""Lets a demo's script read its options and do nothing else: `FILE NAME RANKS [arguments]`.

The script runs under another name than `__main__`, so it only defines its functions. Then its
`parse_arguments` is called as if `RANKS` ranks had been started, and its output is reported.
"""

import contextlib
import io
import os
import runpy
import sys

from course_utils.worker import report

sys.path.remove(os.path.dirname(__file__))  # a worker file may have the same name as a module there
script, name, ranks, *arguments = sys.argv[1:]
script_names = runpy.run_path(script, run_name="demo")
os.environ["WORLD_SIZE"] = ranks
sys.argv = [f"./run.sh demo {name}", *arguments]
said = io.StringIO()
status = 0
with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
    try:
        script_names["parse_arguments"]()
    except SystemExit as end:
        status = end.code
report(status=status, said=said.getvalue())
