"""Wrong answers to 06.1 and 06.2, and right ones of another kind."""

CLONE = "total = x.clone(memory_format=torch.contiguous_format)"
REDUCE = "dist.all_reduce(total, group=group)"
F = "return Copy.apply(x, group)"
G = "return Sum.apply(x, group)"
G_BACK = "return Copy.apply(gradient, ctx.group), None"
COLUMN = "return linear(copy_to_group(x, group), weight, bias)"
ROW = "reduce_from_group(linear(x, weight), group)"
ADD = "y if bias is None else y + bias"

MUTANTS = {
    "06.1": [
        (
            "zeros beside it",
            REDUCE,
            "both = torch.stack([total, torch.zeros_like(total)])\n"
            "dist.all_reduce(both, group=group)\n"
            "total = both[0]",
            "What travels besides",
        ),
        (
            "summed in bfloat16",
            REDUCE,
            "half = total.bfloat16()\n"
            "dist.all_reduce(half, group=group)\n"
            "total = half.to(total.dtype)",
            "gave",
        ),
        (
            "the gradient is cleared",
            G_BACK,
            "kept = gradient.clone()\ngradient.zero_()\nreturn kept, None",
            "changed the gradient that it was given",
        ),
        (
            "two dimensions only",
            CLONE,
            f"rows, columns = x.shape\n{CLONE}",
            "too many values to unpack",
        ),
        ("f does nothing", F, "return x", "Who adds up"),
        (
            "f sums forward as well",
            F,
            "return Copy.apply(Sum.apply(x, group), group)",
            "Forward f is a copy",
        ),
        (
            "g sums backward as well",
            G_BACK,
            "return Sum.apply(gradient, ctx.group), None",
            "what is dy/dx0?",
        ),
        ("g in place", CLONE, "total = x", "changed x that it was given"),
        (
            "g without a Function",
            G,
            "total = x.clone()\ndist.all_reduce(total, group=group)\nreturn total",
            "right values, by chance",
        ),
        (
            "g gives the mean",
            G,
            f"{G} / dist.get_world_size(group)",
            "That is the mean. The terms",
        ),
        (
            "the group is forgotten",
            REDUCE,
            "dist.all_reduce(total)",
            "Where does `group` go?",
        ),
        (
            "x is broadcast first, to be sure",
            "ctx.group = group\n        return x",
            "ctx.group = group\n"
            "x = x.clone()\n"
            "dist.broadcast(x, group=group, group_src=0)\n"
            "return x",
            "expected nothing",
        ),
        (
            "f as a hook on x",
            F,
            "x.register_hook(lambda gradient: Sum.apply(gradient, group))\nreturn x",
            "What came past f is not f's",
        ),
    ],
    "06.2": [
        ("no f", "copy_to_group(x, group)", "x", "Who adds up what each says?"),
        ("g in place of f", "(copy_to_group", "(reduce_from_group", "x is whole here"),
        (
            "the column gathers",
            COLUMN,
            "y = linear(copy_to_group(x, group), weight, bias)\n"
            "parts = [y.clone() for _ in range(torch.distributed.get_world_size(group))]\n"
            "torch.distributed.all_gather(parts, y, group)\n"
            "return torch.cat(parts, -1)",
            "its own outputs only",
        ),
        (
            "the mean of the gradients of x",
            COLUMN,
            "x = copy_to_group(x, group)\n"
            "x.register_hook(lambda g: g / torch.distributed.get_world_size(group))\n"
            "return linear(x, weight, bias)",
            "The mean?",
        ),
        (
            "the bias before the sum",
            "linear(x, weight)",
            "linear(x, weight, bias)",
            ADD,
            "y",
            "how often is it in?",
        ),
        (
            "a share of the bias on every rank",
            f"y = {ROW}",
            "share = 0 if bias is None else bias / torch.distributed.get_world_size(group)\n"
            "y = reduce_from_group(linear(x, weight) + share, group)",
            ADD,
            "y",
            "t times too slowly",
        ),
        (
            "the bias on the first rank only",
            f"y = {ROW}",
            "first = torch.distributed.get_rank(group) == 0\n"
            "y = linear(x, weight) + (0 if bias is None else bias * first)\n"
            "y = reduce_from_group(y, group)",
            ADD,
            "y",
            "should learn on every rank",
        ),
        ("no sum", ROW, "linear(x, weight)", "Is a term missing"),
        (
            "the sum in place, as published",
            ROW,
            "linear(x, weight)\ntorch.distributed.all_reduce(y, group=group)",
            "right values, by chance",
        ),
        (
            "f before the row",
            "linear(x, weight)",
            "linear(copy_to_group(x, group), weight)",
            "each part is its rank's own",
        ),
        ("a bias is always there", ADD, "y + bias", "unsupported operand"),
        (
            "the group is forgotten",
            ROW,
            "reduce_from_group(linear(x, weight))",
            "where does `group` go?",
        ),
        (
            "one layer is still a stub",
            f"y = {ROW}",
            "raise NotImplementedError",
            "row still raises NotImplementedError",
        ),
    ],
}

RIGHT = {
    "06.1": [
        (
            "a group of one sends nothing, as in Megatron-LM",
            CLONE,
            f"if dist.get_world_size(group) == 1:\n    return x\n{CLONE}",
        ),
    ]
}
