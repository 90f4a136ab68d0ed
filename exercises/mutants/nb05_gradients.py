"""Wrong answers to 05.4 and 05.5, and right ones of another kind."""

TOTAL = "dist.all_reduce(total)"
WEIGHTED = "gradient * (rows / total.item())"
SCATTER = "dist.reduce_scatter_tensor(shard, weighted)"
PART = "chunk(dist.get_world_size())[dist.get_rank()]"
SQUARES = "shard.double().square().sum()"

MUTANTS = {
    "05.5": [
        (
            "sent as half",
            SCATTER,
            "shard = shard.half()\ndist.reduce_scatter_tensor(shard, weighted.half())",
            "return shard",
            "return shard.to(gradient)",
            "returned",
        ),
        (
            "rows counted in float16",
            TOTAL,
            f"total = total.half()\n{TOTAL}",
            "many rows: rank 0 returned",
        ),
        (
            "a rank without rows stays away",
            TOTAL,
            f"if rows == 0:\n    return torch.zeros_like(gradient.{PART})\n{TOTAL}",
            "2 ranks",
        ),
        ("the sum", WEIGHTED, "gradient.clone()", "What makes it a mean?"),
        (
            "a mean of means",
            WEIGHTED,
            "gradient / dist.get_world_size()",
            "Whose rows weigh too much",
        ),
        (
            "divided after the sum",
            WEIGHTED,
            "gradient * rows",
            "return shard",
            "return shard / total.item()",
            "before the sum or after?",
        ),
        ("not sent", SCATTER, f"shard = gradient.{PART}.clone()", "Who tells it of the others?"),
        (
            "an all-reduce, then a slice",
            SCATTER,
            f"dist.all_reduce(weighted)\nshard = weighted.{PART}",
            "Which collective gives it just that?",
        ),
        (
            "in place",
            f"weighted = {WEIGHTED}",
            "gradient *= rows / total.item()",
            SCATTER,
            "dist.reduce_scatter_tensor(shard, gradient)",
            "changed the gradient that it was given",
        ),
        (
            "in double precision",
            WEIGHTED,
            "gradient.double() * (rows / total.item())",
            SCATTER,
            f"shard = shard.double()\n{SCATTER}",
            "returned float64, expected float32",
        ),
        (
            "in double precision on the way",
            WEIGHTED,
            "gradient.double() * (rows / total.item())",
            SCATTER,
            f"shard = shard.double()\n{SCATTER}\nshard = shard.to(gradient.dtype)",
            "In which dtype does the gradient travel?",
        ),
        (
            "divided twice",
            SCATTER,
            "dist.reduce_scatter_tensor(shard, weighted / dist.get_world_size())",
            "By which number do you divide?",
        ),
        ("the whole", SCATTER, "shard = weighted\ndist.all_reduce(shard)", "How long is yours?"),
    ],
    "05.4": [
        (
            "a float16 norm that overflows",
            SQUARES,
            "(torch.linalg.vector_norm(shard) ** 2).double()",
            "beyond float16",
        ),
        ("whole numbers", ".double()", ".long()", "returned"),
        ("its own", TOTAL, "pass", "Who tells it of the others?"),
        (
            "norms added up",
            TOTAL,
            f"total.sqrt_()\n{TOTAL}",
            "total.sqrt()",
            "total",
            "their squares do",
        ),
        ("no root", ".sqrt()", "", "the square of the norm"),
        (
            "averaged",
            TOTAL,
            f"{TOTAL}\ntotal /= dist.get_world_size()",
            "where the ranks hold different values",
        ),
        ("squared in float16", ".double()", "", "The square of 300 is beyond float16"),
        (
            "a collective for each shard",
            f"if shard is not None:\n            total += {SQUARES}",
            f"one = torch.zeros_like(total) if shard is None else {SQUARES}\n"
            "dist.all_reduce(one)\n"
            "total += one",
            f"\n    {TOTAL}",
            "",
            "2 ranks",
        ),
        (
            "an idle rank stays away",
            TOTAL,
            f"if all(shard is None for shard in shards):\n    return 0.0\n{TOTAL}",
            "Who tells it of the others?",
        ),
        ("a tensor", ".item()", "", "returned a Tensor, expected a float"),
        (
            "clipped on the way",
            TOTAL,
            f"{TOTAL}\nfor shard in shards:\n    if shard is not None:\n        shard /= 2",
            "changed a shard that it was given",
        ),
        (
            "everything sent to everyone",
            TOTAL,
            "every = [None] * dist.get_world_size()\n"
            "here = [shard.double().tolist() for shard in shards if shard is not None]\n"
            "dist.all_gather_object(every, here)\n"
            "squares = [x * x for rank in every for shard in rank for x in shard]\n"
            "total = torch.tensor(sum(squares), dtype=torch.float64)",
            "expected one collective of one number",
        ),
    ],
}

RIGHT = {
    "05.5": [
        (
            "a rank alone sends nothing",
            TOTAL,
            f"if dist.get_world_size() == 1:\n    return gradient.clone()\n{TOTAL}",
        )
    ],
    "05.4": [
        (
            "a rank alone sends nothing",
            TOTAL,
            f"if dist.get_world_size() > 1:\n    {TOTAL}",
        ),
        (
            "a number of NumPy",
            "return total.sqrt().item()",
            "import numpy\nreturn numpy.sqrt(numpy.float64(total.item()))",
        ),
    ],
}
