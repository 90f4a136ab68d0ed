"""Wrong answers to the exercises of notebook 14, and right ones of another kind."""

GRID = ".view(*sizes.values())"
GROUPS = "ranks.permute(*rest, *along).reshape(-1, size)"
LAST_RULE = "(REPLICATE, PARTIAL): PARTIAL,"
OTHERWISE = """if (a, b) in rules:
        return rules[a, b]
    if VARYING in (a, b) and PARTIAL not in (a, b):"""
ALIVE = "min(microbatches, cut.pp - stage)"
RECOMPUTED = """if cut.recompute:  # the inputs, and all of the one layer that runs again
        return state + alive * layers * input_bytes + layer_bytes
    return state + alive * layers * layer_bytes"""
SUM = "dist.all_reduce(gradient, group=dp)"
EACH = f"for gradient in found.values():  # only dp ranks have other rows\n        {SUM}"

MUTANTS = {
    "14.1": [
        (
            "dp is the inner axis",
            GRID,
            ".view(*list(sizes.values())[::-1]).permute(*range(len(names))[::-1])",
            "Which axis is the inner one?",
        ),
        (
            "the other axes",
            GROUPS,
            "ranks.permute(*along, *rest).reshape(size, -1)",
            "Who differs only in this coordinate?",
        ),
        (
            "neighbours, whatever the axis",
            GROUPS,
            "ranks.reshape(-1, size)",
            "Which axis is the inner one?",
        ),
        (
            "only the first of two axes",
            "names = list(sizes)",
            "names, axes = list(sizes), axes[:1]",
            "agree in every other coordinate",
        ),
        (
            "in the mesh's order",
            "names = list(sizes)",
            "names, axes = list(sizes), [each for each in sizes if each in axes]",
            "the last one given runs fastest",
        ),
        ("only one group", GROUPS, f"{GROUPS}[:1]", "each of them is in one group"),
        ("the last rank first", GROUPS, f"{GROUPS}.flip(1)", "in another order"),
        ("counted from 1", GRID, f"{GRID} + 1", "each of them is in one group"),
        ("a number", f"{GROUPS}.tolist()", "7", "list of lists of ranks"),
    ],
    "14.2": [
        (
            "two partial ones",
            LAST_RULE,
            f"{LAST_RULE} (PARTIAL, PARTIAL): PARTIAL,",
            "four products",
        ),
        (
            "an inner dimension that is replicated",
            "shard(0)): PARTIAL",
            "shard(0)): REPLICATE",
            "part of the inner dimension",
        ),
        (
            "partial is refused everywhere",
            "(PARTIAL, REPLICATE): PARTIAL,",
            "",
            "expected Partial",
        ),
        (
            "rows and columns",
            LAST_RULE,
            f"{LAST_RULE} (shard(0), shard(1)): shard(0),",
            "expected a LayoutError",
        ),
        (
            "columns become rows",
            "shard(1)): shard(1)",
            "shard(1)): shard(0)",
            "expected Shard(1)",
        ),
        (
            "varying and partial",
            OTHERWISE,
            "if (a, b) in rules:\n    return rules[a, b]\nif VARYING in (a, b):",
            "unless the other is an unfinished sum",
        ),
        (
            "None where no layout fits",
            'raise LayoutError(f"{a} @ {b}: the product',
            'return None\nraise LayoutError(f"{a} @ {b}: the product',
            "returned None",
        ),
        (
            "varying is refused",
            OTHERWISE,
            "if (a, b) in rules:\n    return rules[a, b]\nif False:",
            "Own values times anything",
        ),
        (
            "a partial with columns",
            LAST_RULE,
            f"{LAST_RULE} (PARTIAL, shard(1)): PARTIAL,",
            "expected a LayoutError",
        ),
    ],
    "14.3": [
        ("all micro-batches", ALIVE, "microbatches", "Not all of them"),
        (
            "as many as stages behind",
            ALIVE,
            "cut.pp - stage",
            "fewer micro-batches than stages",
        ),
        (
            "the stages counted from the wrong end",
            ALIVE,
            "min(microbatches, stage + 1)",
            "the first keeps p",
        ),
        (
            "without the one at work",
            ALIVE,
            "min(microbatches, cut.pp - 1 - stage)",
            "counts, too",
        ),
        ("only dp", "cut.dp * cut.cp", "cut.dp", "over dp and cp"),
        ("nothing is sharded", " - sharded + sharded / n", "", "what stays whole?"),
        (
            "the stages of ZeRO mixed up",
            "1: optimizer, 3: weight + gradient + optimizer",
            "1: gradient + optimizer, 3: optimizer",
            "stage 3 all 16",
        ),
        ("the layer that runs again", " + layer_bytes", "", "needs all that it keeps"),
        ("recomputation saves nothing", "if cut.recompute:", "if False:", "only its input"),
        (
            "nothing returned",
            RECOMPUTED,
            "return None",
            "expected",
        ),
        ("not a number", "sharded / n", "float('nan')", "nan"),
    ],
    "14.4": [
        (
            "the sum over tp is still missing",
            "dist.all_reduce(below, group=tp)",
            "pass",
            "Each tp rank went back through its own columns",
        ),
        (
            "bias is still summed over all ranks",
            "return found",
            'dist.all_reduce(found["bias"], group=tp)\nreturn found',
            "have this gradient already",
        ),
        (
            "down is still not summed",
            "found.values()",
            '[each for name, each in found.items() if name != "down"]',
            "as the gradient of `down`",
        ),
        (
            "everything is summed over all ranks",
            SUM,
            "dist.all_reduce(gradient)",
            "have this gradient already",
        ),
        (
            "a mean over dp",
            SUM,
            f"{SUM}\ngradient /= dist.get_world_size(dp)",
            "divided by `rows` once",
        ),
        (
            "each rank divides by its own rows",
            "/ rows",
            "/ len(x)",
            "divided by `rows` once",
        ),
        (
            "without the sum of the forward pass",
            "dist.all_reduce(out, group=tp)",
            "pass",
            "expected",
        ),
        (
            "one gradient is left out",
            '"bias": error.sum(0)',
            "",
            "Return a dictionary",
        ),
        ("x is scaled in place", "x * scale", "x.mul_(scale)", "expected"),
        (
            "weights are changed",
            "return found",
            'bias -= 0.1 * found["bias"]\nreturn found',
            "changed what it was given",
        ),
        (
            "not a number",
            "return found",
            "found['up'] *= float('nan')\nreturn found",
            "as the gradient of `up`",
        ),
    ],
}

RIGHT = {
    "14.1": [
        ("by permuting", GROUPS, "ranks.permute(*rest, *along).flatten().view(-1, size)"),
        ("as tensors", f"{GROUPS}.tolist()", f"list({GROUPS})"),
        (
            "as tuples",
            f"{GROUPS}.tolist()",
            f"[tuple(group) for group in {GROUPS}.tolist()]",
        ),
    ],
    "14.2": [
        (
            "by cases",
            """
from layouts import PARTIAL, REPLICATE, VARYING, LayoutError, shard

def matmul_layout(a, b):
    if b == REPLICATE and a in (REPLICATE, shard(0), PARTIAL):
        return a
    if a == REPLICATE and b in (shard(1), PARTIAL):
        return b
    if (a, b) == (shard(1), shard(0)):
        return PARTIAL
    if VARYING in (a, b) and PARTIAL not in (a, b):
        return VARYING
    raise LayoutError(f'{a} @ {b}')
""",
        )
    ],
    "14.3": [
        (
            "in one line",
            RECOMPUTED,
            "kept, again = (input_bytes, layer_bytes) if cut.recompute else (layer_bytes, 0)\n"
            "return state + alive * layers * kept + again",
        )
    ],
    "14.4": [
        (
            "written out",
            EACH,
            'dist.all_reduce(found["scale"], group=dp)\n'
            'dist.all_reduce(found["bias"], group=dp)\n'
            'dist.all_reduce(found["up"], group=dp)\n'
            'dist.all_reduce(found["down"], group=dp)',
        ),
        (
            "the sum over tp at the end",
            "dist.all_reduce(below, group=tp)",
            "pass",
            "return found",
            'dist.all_reduce(found["scale"], group=tp)\nreturn found',
        ),
    ],
}
