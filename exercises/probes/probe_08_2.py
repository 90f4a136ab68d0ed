"""Calls the student's in_order on shares that do not divide, and looks at every row and byte."""

import torch
import torch.distributed as dist

from course_utils.checking.compare import count, expect_calls, judge, name_of
from course_utils.checking.findings import judging, observe, random_values, where
from course_utils.worker import init

from exercise_08_2 import in_order

DTYPES = (torch.float64, torch.float32, torch.int64, torch.bool)
SHAPES = ((), (3,), (2, 2))
SIZES = (7, 10, 2, 12, 1, 101)


def values(seed: int, size: int, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    """What all ranks together have predicted: (size, ...), no two rows alike where possible."""
    drawn = random_values(seed, size, *shape, dtype=torch.float64)
    if dtype == torch.bool:
        return drawn > 0
    return (1e9 * drawn).to(dtype) if dtype == torch.int64 else drawn.to(dtype)


def look(size: int, shape: tuple[int, ...], dtype: torch.dtype, seed: int) -> None:
    """One call, beside what it should give."""
    whole = values(seed, size, shape, dtype)
    # Indexed, not sliced: a share of its own memory.
    places = [torch.tensor(range(each, size, ranks), dtype=torch.int64) for each in range(ranks)]
    shares = [whole[place.to(whole.device)] for place in places]
    rows = -(-size // ranks)
    padded = [torch.cat([s, s.new_zeros(rows - len(s), *shape)]) for s in shares]
    of_shape = f" of shape {shape}" * bool(shape)
    here = where(f"{count(size, 'sample')}{of_shape}, {name_of(dtype)}")
    found = observe(in_order, shares[rank].clone(), size, names=("`mine`",))
    dealt = torch.stack(padded, 1).flatten(0, 1)
    mistakes = [
        ("That is one rank after another. Which sample is row 1?", torch.cat(shares)),
        ("That is one rank after another, cut off at the end.", torch.cat(padded)[:size]),
        ("Padding is still in it: one rank after another.", torch.cat(padded)),
        ("Padding is still in it. How many rows are real?", dealt),
        ("That is this rank's share. Where are the others'?", shares[rank]),
        ("The last rows of the longer shares are missing.", dealt[: size // ranks * ranks]),
        ("Rounded on the way. In which dtype does yours travel?", whole.float().to(dtype)),
    ]
    with judging():
        hint = "Row k of rank r is sample r + k N. Where does it go?"
        judge(here, found, whole, mistakes, hint, dtype=dtype, tolerance=0.0)
    with judging():
        sent = rows * whole[:1].nbytes
        allowed = [[["all_gather", sent]], *[[]] * (ranks == 1)]
        hint = "The longest share has ceil(size / N) rows: every rank gives that many, once."
        expect_calls(here, found["calls"], allowed, hint)


init()
rank, ranks = dist.get_rank(), dist.get_world_size()
for number, size in enumerate(SIZES):
    for place, shape in enumerate(SHAPES):
        look(size, shape, DTYPES[(number + place) % 4], 10 * number + place)
