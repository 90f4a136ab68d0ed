"""Wrong answers to 03.3."""

PADDED = "order = [order[place % size] for place in range(total)]"
DEALT = "order[rank::ranks]"

MUTANTS = {
    "03.3": [
        (
            "the global generator",
            "generator = torch.Generator().manual_seed",
            "torch.manual_seed",
            "torch.randperm(size, generator=generator)",
            "torch.randperm(size)",
            "changed the global random state",
        ),
        ("floats", DEALT, f"[float(index) for index in {DEALT}]", "a list that holds a float"),
        ("not padded", PADDED, "pass", "the same number of steps"),
        (
            "into pieces",
            DEALT,
            "order[rank * total // ranks :][: total // ranks]",
            "like cards",
        ),
        ("no epoch", "seed + epoch", "seed", "epoch 0's order"),
        ("an order for each rank", "seed + epoch", "seed + epoch + rank", "its own order"),
        (
            "not shuffled",
            "torch.randperm(size, generator=generator).tolist()",
            "list(range(size))",
            "not shuffled",
        ),
        (
            "padded with the last",
            PADDED,
            "order += [order[-1]] * (total - size)",
            "Only the padding is wrong",
        ),
        (
            "padded once at most",
            PADDED,
            "order += order[: total - size]",
            "the same number of steps",
        ),
        ("a tensor", DEALT, "torch.tensor(order)[rank::ranks]", "a list of numbers"),
    ],
}
