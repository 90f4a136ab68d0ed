"""Scripts that take minutes on a CPU, made shorter for the pretended GPUs."""

from pathlib import Path

import pytest

from course_utils import cells
from course_utils.files import imported, script_path

SHORTER = {  # what takes minutes on a CPU: the part of the script that says how much, and less
    "train_one.py": ("EPOCHS, BATCH, RATE = 4, 64", "EPOCHS, BATCH, RATE = 1, 512"),
    "train_many.py": ("EPOCHS, BATCH, RATE = 4, 64", "EPOCHS, BATCH, RATE = 1, 512"),
    "train_lm.py": ("default=120", "default=2"),  # bfloat16, as below
    "run_log.py": ("(8192, torch.bfloat16)", "(128, torch.bfloat16)"),  # train_lm.py imports it
    "learn_alone.py": ("in range(60)", "in range(3)"),
    "random_tokens.py": ("in range(200)", "in range(20)"),
    "spikes.py": ("= 60, 8, (35, 36)", "= 2, 8, (0, 1)"),
    "train_lab.py": ("2, 200, 0.01", "2, 5, 0.01"),  # the number of epochs
    "resnet_to_take_home.py": ("FakeData(200,", "FakeData(8,"),  # bfloat16: a second an image
    "prove_resnet.py": ("--limit 40", "--limit 16"),
    "prove_published.py": ("--limit 40", "--limit 16"),
    "prove_sharded_training.py": ("steps=60", "steps=5"),
    "measure_speed.py": ("in_turn(works, 45)", "in_turn(works, 7)"),
    "pass_times.py": ("in_turn(works, 45)", "in_turn(works, 7)"),
    "measure_layer.py": ("(8192, torch.bfloat16)", "(128, torch.bfloat16)"),
    "measure_machine.py": ("(4096, torch.bfloat16)", "(128, torch.bfloat16)"),
}


@pytest.fixture
def shortened(worker):
    """The file in `workers/` that runs in place of a script: itself, or a copy with fewer steps."""

    def call(file: str, gpus: int) -> str:
        if file not in SHORTER:
            return file
        script = script_path(file)  # what the script imports is written with it
        source, (much, less) = cells.sources()[file], SHORTER[file]
        assert source.count(much) == 1, f"{file}: what was to be made shorter is not there"
        source = source.replace(much, less)
        for each in filter(SHORTER.get, imported(script)):
            module, short = Path(each).stem, Path(call(each, gpus)).stem
            source = source.replace(f"from {module} ", f"from {short} ")
        return worker(f"on_{gpus}_{file}", source)

    return call
