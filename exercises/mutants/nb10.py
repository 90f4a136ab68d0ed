"""Wrong answers to 10.1 and 10.2, and right ones of another kind."""

SHARE = "round(share * len(whole))"
SENT = """mine = torch.cat([whole[places].view(torch.int32), places.int()])  # values, then places
    every = mine.new_empty(world * len(mine))
    dist.all_gather_into_tensor(every, mine, group)
    total = torch.zeros_like(whole)
    for theirs in every.view(world, -1):
        values = theirs[:-count].clone().view(whole.dtype)
        total[theirs[-count:].long()] += values"""
KEEP = "whole[places] = 0"
RESULT = "total / world, whole"
SUM_OF_P = "dist.all_reduce(p, group=group)"
SUM_OF_Q = "dist.all_reduce(q, group=group)"
MEAN_OF_Q = "mine / dist.get_world_size(group)"
ORTHONORMAL = "p = torch.linalg.qr(p).Q"


def _two(places: str = "torch.int32", add: str = "+=") -> tuple[str, str]:
    """Values and places sent in two messages, as tensors in lists."""
    return SENT, (
        f"values, theirs = whole[places], places.to({places})\n"
        "all_values = [torch.empty_like(values) for _ in range(world)]\n"
        "all_places = [torch.empty_like(theirs) for _ in range(world)]\n"
        "dist.all_gather(all_places, theirs, group)\n"
        "dist.all_gather(all_values, values, group)\n"
        "total = torch.zeros_like(whole)\n"
        "for where, what in zip(all_places, all_values):\n"
        f"    total[where.long()] {add} what"
    )


MUTANTS = {
    "10.1": [
        ("a sum", RESULT, "total, whole", "What makes it a mean?"),
        ("not by magnitude", "whole.abs()", "whole", "the largest by magnitude"),
        (
            "forgot what was kept",
            "gradient + kept",
            "gradient.clone()",
            "You left out what was kept",
        ),
        ("keeps what was sent, too", KEEP, "pass", "Subtract what was sent"),
        ("keeps nothing", KEEP, "whole.zero_()", "Where do the small values go?"),
        (
            "keeps what differs from the mean",
            KEEP,
            "whole -= total / world",
            "whatever the others sent",
        ),
        (
            "an all-reduce of everything",
            SENT,
            "total = torch.zeros_like(whole)\n"
            "total[places] = whole[places]\n"
            "dist.all_reduce(total, group=group)",
            "all n values saves nothing",
        ),
        ("places as int64", *_two(places="torch.int64"), "takes twice as many bytes"),
        ("the last of two ranks wins", *_two(add="="), "expected"),
        ("rounds down", SHARE, "int(share * len(whole))", "the mean:"),
        (
            "works in the gradient it was given",
            "gradient + kept",
            "gradient.add_(kept)",
            "changed `gradient`",
        ),
        (
            "the whole world",
            "get_world_size(group)",
            "get_world_size()",
            "every, mine, group)",
            "every, mine)",
            "a group of two",
        ),
        (
            "float16 on the way",
            RESULT,
            "(total / world).half().to(total.dtype), whole",
            "expected",
        ),
        ("one tensor", RESULT, "total / world", "expected 2 tensors"),
        ("places as float32", *_two(places="torch.float32"), "up to 2^24"),
        (
            "a list of values",
            RESULT,
            "(total / world).tolist(), whole",
            "a list, expected a Tensor",
        ),
    ],
    "10.2": [
        ("not orthonormal", ORTHONORMAL, "pass", "Are the columns of p orthonormal?"),
        ("its own p", SUM_OF_P, "pass", "own p"),
        ("a sum of q", MEAN_OF_Q, "mine.clone()", "Which of p and q becomes a mean?"),
        ("its own q", "return p @ q.T", "return p @ mine.T", "this rank's own q"),
        ("keeps by the mean q", "whole - p @ mine.T", "whole - p @ q.T", "own q left out"),
        ("forgot what was kept", "matrix + kept", "matrix", "You left out what was kept"),
        (
            "keeps nothing",
            "whole - p @ mine.T",
            "torch.zeros_like(whole)",
            "Where does the rest go?",
        ),
        ("returns its own q", "mine.T, q", "mine.T, mine", "the same on every rank"),
        (
            "all-reduces the matrix",
            "whole = matrix + kept",
            "whole = matrix + kept\ndist.all_reduce(matrix.clone(), group=group)",
            "Send only p, (m, k), and q, (n, k)",
        ),
        ("changes the matrix", "matrix + kept", "matrix.add_(kept)", "changed `matrix`"),
        ("the whole world", SUM_OF_P, "dist.all_reduce(p)", "a group of two"),
        ("q as a list", "mine.T, q", "mine.T, q.tolist()", "expected a Tensor"),
        (
            "Gram-Schmidt without a guard",
            ORTHONORMAL,
            "p[:, 0] /= p[:, 0].norm()\n"
            "for i in range(1, p.shape[1]):\n"
            "    p[:, i] -= p[:, :i] @ (p[:, :i].T @ p[:, i])\n"
            "    p[:, i] /= p[:, i].norm()",
            "Is a column of p 0 / 0?",
        ),
        (
            "one buffer for all calls",
            "return p @ q.T",
            "buffers = low_rank.__dict__.setdefault('buffers', {})\n"
            "mean = buffers.setdefault((whole.shape, q.dtype), whole.clone()).copy_(p @ q.T)\n"
            "return mean",
            "two calls gave answers in the same memory",
        ),
    ],
}

RIGHT = {
    "10.1": [
        ("two all-gathers, of lists", *_two()),
        (
            "sorted, and what is left by subtraction",
            "whole.abs()",
            "whole.square()",
            KEEP,
            "whole = whole - torch.zeros_like(whole).index_copy_(0, places, whole[places])",
        ),
        ("halves rounded up", SHARE, "int(share * len(whole) + 0.5)"),
    ],
    "10.2": [
        ("the other sign of p", "torch.linalg.qr(p).Q", "-torch.linalg.qr(p).Q"),
        (
            "divides after the sum",
            MEAN_OF_Q,
            "mine.clone()",
            SUM_OF_Q,
            f"{SUM_OF_Q}\nq = q / dist.get_world_size(group)",
        ),
    ],
}
