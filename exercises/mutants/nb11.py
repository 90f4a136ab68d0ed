"""Wrong answers to the exercises of notebook 11, and right ones of another kind."""

SHARE = "(its_lse - total).exp().unsqueeze(-1)"
TOTAL = "total = torch.logaddexp(lse, other_lse)"
JOINED = "return joined, total"
PIECES = "(rank, 2 * ranks - 1 - rank)"
SORTED = "rows[plan.order]"
BACK = "back[plan.order.argsort()]"
LOSS = "losses.sum() / count"
OWN_LOSS = "losses.sum() / valid.sum().clamp(min=1)"
JOIN = "dist.all_reduce(weight.grad)"
MEAN = (JOIN, "dist.all_reduce(weight.grad, dist.ReduceOp.AVG)")

MUTANTS = {
    "11.1": [
        ("added", SHARE, "1", "Adding counts every piece in full"),
        ("the mean", SHARE, "0.5", "equal weight"),
        (
            "weights swapped",
            "((out, lse), (other_out, other_lse))",
            "((out, other_lse), (other_out, lse))",
            "the wrong way round",
        ),
        ("weights not divided", "(its_lse - total)", "its_lse", "do not add up to 1"),
        (
            "exp of large numbers",
            TOTAL,
            "total = (lse.exp() + other_lse.exp()).log()",
            SHARE,
            "(its_lse.exp() / total.exp()).unsqueeze(-1)",
            "operation gives nan",
        ),
        (
            "logarithms added",
            JOINED,
            "return joined, lse + other_lse",
            "you can't add two logarithms",
        ),
        (
            "the larger lse",
            JOINED,
            "return joined, torch.maximum(lse, other_lse)",
            "the larger of the two",
        ),
        ("one lse", JOINED, "return joined, lse", "of one piece alone"),
        ("one tensor", JOINED, "return joined", "two tensors"),
        ("its arguments written", "part * share", "part.mul_(share)", "changed `out`"),
        ("float32", JOINED, "return joined.float(), total", "out"),
    ],
    "11.2": [
        ("neighbours", PIECES, "(2 * rank, 2 * rank + 1)", "These two are neighbours"),
        ("both halves alike", PIECES, "(rank, ranks + rank)", "the later piece of both"),
        ("the late one first", PIECES, "(2 * ranks - 1 - rank, rank)", "comes first"),
        ("one too far", PIECES, "(rank, 2 * ranks - 2 - rank)", "held twice"),
        ("one piece", PIECES, "(rank,)", "Every rank holds 2 of the"),
        ("sizes rounded down", "min(piece, longer)", "0", "Nobody holds position"),
        (
            "positions, not pieces",
            "def zigzag(length, rank, ranks):\n    return list(range(rank, length, ranks))\n",
            "Return two pairs",
        ),
        ("nothing", "def zigzag(length, rank, ranks):\n    pass\n", "Return two pairs"),
    ],
    "11.3": [
        ("not sorted", SORTED, "rows", "Did you sort them"),
        ("not brought back", BACK, "back", "What undoes a sort?"),
        ("sorted twice", BACK, "back[plan.order]", "What undoes a sort?"),
        ("descending", "stable=True", "descending=True, stable=True", "dispatch"),
        ("receives what it sends", "[each[rank] for each in every]", "send", "rank"),
        (
            "the group forgotten",
            "gather_numbers(send, group)",
            "gather_numbers(send)",
            "Number of tensor splits not",
        ),
        ("no gradient", SORTED, f"{SORTED}.detach()", "gradient of the rows is wrong"),
        (
            "everything to everyone",
            f"return exchange({SORTED}",
            "everything = rows.detach().repeat(len(plan.send), 1)\n"
            "lengths = [sum(each) for each in gather_numbers(plan.send, plan.group)]\n"
            "exchange(everything, [len(rows)] * len(lengths), lengths, plan.group)\n"
            f"return exchange({SORTED}",
            "moved",
        ),
    ],
    "11.4": [
        ("as it was", LOSS, "losses.sum() / valid.sum()", *MEAN, "its own count"),
        ("at least 1 of its own", LOSS, OWN_LOSS, *MEAN, "its own count"),
        ("own means added", LOSS, OWN_LOSS, "added up"),
        ("the mean of the parts", *MEAN, "or their sum?"),
        ("nobody adds up", JOIN, "pass", "Who adds up the parts?"),
        (
            "all tokens count",
            f"({LOSS}).backward()",
            "tokens = torch.tensor(float(len(losses)))\n"
            "dist.all_reduce(tokens)\n"
            "(losses.sum() / tokens).backward()",
            "Which of them count?",
        ),
        ("the sum", LOSS, "losses.sum()", "not of their mean"),
        ("nothing valid", "total[1].clamp(min=1)", "total[1]", "nan"),
        (
            "its own loss",
            "return total[0] / count",
            f"return ({LOSS}).detach()",
            "part of the loss",
        ),
        ("no backward", JOIN, "weight.grad = None", "weight.grad is None"),
    ],
}

RIGHT = {
    "11.1": [
        (
            "with the larger lse taken off",
            TOTAL,
            "top = torch.maximum(lse, other_lse)\n"
            "total = top + ((lse - top).exp() + (other_lse - top).exp()).log()",
        ),
    ],
    "11.2": [
        (
            "with tensor_split, and ranges as lists",
            "import torch\ndef zigzag(length, rank, ranks):\n"
            "    cut = torch.arange(length).tensor_split(2 * ranks)\n"
            "    return [[int(cut[p][0]), int(cut[p][-1]) + 1]"
            " for p in (rank, 2 * ranks - 1 - rank)]\n",
        ),
    ],
    "11.3": [
        (
            "scattered back",
            BACK,
            "back.new_zeros(back.shape).index_copy(0, plan.order, back)",
        ),
        (
            "counts by an all-to-all",
            "every = gather_numbers(send, group)",
            "import torch\n"
            "came = torch.tensor(send)\n"
            "if ranks > 1:\n"
            "    torch.distributed.all_to_all_single(came, torch.tensor(send), group=group)",
            "[each[rank] for each in every]",
            "came.tolist()",
        ),
    ],
    "11.4": [
        (
            "multiplied by N, for DDP's mean",
            LOSS,
            f"{LOSS} * dist.get_world_size()",
            *MEAN,
        ),
    ],
}
