"""Plausible wrong answers to the exercises of notebook 14, and right ones of another kind."""

_GROUPS = "ranks.permute(*rest, *along).reshape(-1, inner)"
_OTHERS = "return ranks.permute(*along, *rest).reshape(inner, -1).tolist()"
_INSIDE_OUT = (
    "torch.arange(size).view(*list(sizes.values())[::-1]).permute(*range(len(names))[::-1])"
)


def _groups(*body: str, first: str = "torch.arange(size).view(*sizes.values())") -> str:
    lines = (
        "import torch",
        "def groups_along(sizes, *axes):",
        "    size = torch.Size(sizes.values()).numel()",
        "    names = list(sizes)",
        f"    ranks = {first}",
        "    along = [names.index(axis) for axis in axes]",
        "    rest = [k for k in range(len(names)) if k not in along]",
        "    inner = torch.Size([sizes[axis] for axis in axes]).numel()",
    )
    body = body or (f"return {_GROUPS}.tolist()",)
    return "\n".join([*lines, *(f"    {line}" for line in body)]) + "\n"


_RULES = {
    '("Replicate", None), ("Replicate", None)': "a",
    '("Shard", 0), ("Replicate", None)': "a",
    '("Replicate", None), ("Shard", 1)': "b",
    '("Shard", 1), ("Shard", 0)': "PARTIAL",
    '("Partial", None), ("Replicate", None)': "PARTIAL",
    '("Replicate", None), ("Partial", None)': "PARTIAL",
}


def _rule(more: dict[str, str] | None = None, last: str = "", without: str = "") -> str:
    rules = {key: value for key, value in (_RULES | (more or {})).items() if key != without}
    lines = [
        "from layouts import PARTIAL, REPLICATE, VARYING, LayoutError, shard",
        "",
        "",
        "def matmul_layout(a, b):",
        *(
            f"    if (tuple(a), tuple(b)) == ({key}):\n        return {v}"
            for key, v in rules.items()
        ),
        last or "    if VARYING in (a, b) and PARTIAL not in (a, b):\n        return VARYING",
        "    raise LayoutError(f'{a} @ {b}')",
    ]
    return "\n".join(lines) + "\n"


def _bytes(
    n: str = "cut.dp * cut.cp",
    alive: str = "min(microbatches, cut.pp - stage)",
    state: str = "{0: 16, 1: 4 + 12 / n, 3: 16 / n}[cut.zero]",
    kept: str = "alive * layers * (input_bytes if cut.recompute else layer_bytes)",
    again: str = "layer_bytes if cut.recompute else 0",
) -> str:
    return (
        "def rank_bytes("
        "parameters, layers, layer_bytes, input_bytes, cut, stage, microbatches):\n"
        f"    n = {n}\n"
        f"    alive = {alive}\n"
        f"    return parameters * ({state}) + {kept} + ({again})\n"
    )


MUTANTS = {
    "14.1": [
        ("dp is the inner axis", _groups(first=_INSIDE_OUT), "Which axis is the inner one?"),
        ("the other axes", _groups(_OTHERS), "Who differs only in this coordinate?"),
        (
            "neighbours, whatever the axis",
            _groups("return torch.arange(size).view(-1, inner).tolist()"),
            "Which axis is the inner one?",
        ),
        (
            "only the first of two axes",
            _groups().replace("for axis in axes]", "for axis in axes[:1]]"),
            "agree in every other coordinate",
        ),
        (
            "only one group",
            _groups(f"return {_GROUPS}[:1].tolist()"),
            "each of them is in one group",
        ),
        ("the last rank first", _groups(f"return {_GROUPS}.flip(1).tolist()"), "in another order"),
        (
            "counted from 1",
            _groups(first="1 + torch.arange(size).view(*sizes.values())"),
            "each of them is in one group",
        ),
        ("a number", _groups("return 7"), "list of lists of ranks"),
    ],
    "14.2": [
        (
            "two partial ones",
            _rule({'("Partial", None), ("Partial", None)': "PARTIAL"}),
            "four products",
        ),
        (
            "an inner dimension that is replicated",
            _rule({'("Shard", 1), ("Shard", 0)': "REPLICATE"}),
            "part of the inner dimension",
        ),
        (
            "partial is refused everywhere",
            _rule(without='("Partial", None), ("Replicate", None)'),
            "expected Partial",
        ),
        (
            "rows and columns",
            _rule({'("Shard", 0), ("Shard", 1)': "shard(0)"}),
            "expected a LayoutError",
        ),
        (
            "columns become rows",
            _rule({'("Replicate", None), ("Shard", 1)': "shard(0)"}),
            "expected Shard(1)",
        ),
        (
            "varying and partial",
            _rule(last="    if VARYING in (a, b):\n        return VARYING"),
            "unless the other is an unfinished sum",
        ),
        ("varying is refused", _rule(last="    pass"), "Own values times anything"),
        (
            "a partial with columns",
            _rule({'("Partial", None), ("Shard", 1)': "PARTIAL"}),
            "expected a LayoutError",
        ),
    ],
    "14.3": [
        ("all micro-batches", _bytes(alive="microbatches"), "Not all of them"),
        (
            "as many as stages behind",
            _bytes(alive="cut.pp - stage"),
            "fewer micro-batches than stages",
        ),
        (
            "the stages counted from the wrong end",
            _bytes(alive="min(microbatches, stage + 1)"),
            "the first keeps p",
        ),
        (
            "without the one at work",
            _bytes(alive="min(microbatches, cut.pp - 1 - stage)"),
            "counts, too",
        ),
        ("only dp", _bytes(n="cut.dp"), "over dp and cp"),
        ("nothing is sharded", _bytes(state="16"), "what stays whole?"),
        (
            "the stages of ZeRO mixed up",
            _bytes(state="{0: 16, 1: 2 + 14 / n, 3: 4 + 12 / n}[cut.zero]"),
            "stage 3 all 16",
        ),
        ("the layer that runs again", _bytes(again="0"), "needs all that it keeps"),
        (
            "recomputation saves nothing",
            _bytes(kept="alive * layers * layer_bytes", again="0"),
            "only its input",
        ),
        ("nothing returned", _bytes().split("    n =")[0] + "    return None\n", "expected"),
        ("not a number", _bytes(state="float('nan')"), "nan"),
    ],
}

RIGHT = {
    "14.1": [
        ("by permuting", _groups()),
        ("as tensors", _groups(f"return list({_GROUPS})")),
        ("as tuples", _groups(f"return [tuple(group) for group in {_GROUPS}.tolist()]")),
    ],
    "14.2": [("by cases", _rule())],
    "14.3": [("in one line", _bytes())],
}
