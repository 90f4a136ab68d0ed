"""A student's own copy of a notebook, as it is opened: nothing gives a guess away."""

from tools import copies

NAME = "00_processes_and_collectives.ipynb"


def test_a_copy_is_open_without_outputs_and_its_first_cells_say_nothing(open_notebook, lab):
    folder = lab.notebooks / "my"
    folder.mkdir()
    copies.update(folder)
    page = open_notebook(f"my/{NAME}")
    cells = page.cells()
    assert cells
    assert {(cell["text"], cell["number"]) for cell in cells} == {("", None)}
    setup = next(
        at for at, cell in enumerate(cells) if "from course_utils import" in cell["source"]
    )
    page.run_cells(*range(1, 2 + setup))  # the title is cell 0
    ran = page.cells()[: 1 + setup]
    assert [(cell["text"], cell["errors"]) for cell in ran] == [("", [])] * len(ran)
    page.screenshot("copy")
    assert page.errors == []
