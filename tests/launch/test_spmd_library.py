"""The library spmd_types, as notebook 15 shows it: one program is accepted, three are refused."""

from course_utils import launch
from course_utils.files import write_missing
from tests.needs import needs


@needs(modules=("spmd_types",))
def test_the_library_refuses_what_mixes_layouts_and_accepts_the_sum():
    write_missing("spmd_library.py")
    run = launch("spmd_library.py", nproc=1, show=False)
    said = [line.split(":")[0].split() for line in run.ranks[0].stdout.splitlines()]
    verdicts = {" ".join(words[:-1]): words[-1] for words in said}
    assert verdicts == {
        "sum, then relu": "accepted",
        "relu of a part": "refused",
        "bias before the sum": "refused",
        "two parts multiplied": "refused",
    }
