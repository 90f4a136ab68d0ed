"""Wrong answers to 10.4 and 10.3, and right ones of another kind."""

NEXT = "if not found or size > room:"
MOVED = "(before - after) / dist.get_world_size(group)"
REDUCE = "dist.all_reduce(moved, group=group)"
MEAN_AFTER = "after / dist.get_world_size(group)"

MUTANTS = {
    "10.4": [
        (
            "as published",
            """
def buckets(sizes, cap):
    found, offset, next_tensor = [], 0, 0
    while offset < sum(sizes):
        room, bucket = min(cap, sum(sizes) - offset), []
        for number in range(next_tensor, len(sizes)):
            if sizes[number] > room:
                break
            bucket.append(number)
            room -= sizes[number]
            next_tensor += 1
        found.append(bucket)
        offset += cap
    return found
""",
            "Does `offset` count",
        ),
        (
            "leaves out what is too large",
            NEXT,
            f"if size > cap:\n    continue\n{NEXT}",
            "How should it be sent?",
        ),
        ("never quite full", "size > room", "size >= room", "A bucket may be"),
        ("above the cap", "size > room", "room <= 0", "Look before you add"),
        ("a tensor a bucket", NEXT, "if True:", "A bucket may be exactly full"),
        ("backwards", "return found", "return [each[::-1] for each in found]", "not in order"),
        ("an empty one at the end", "return found", "return [*found, []]", "An empty bucket"),
        ("numbers, not lists", "return found", "return len(found)", "a list of lists"),
    ],
    "10.3": [
        ("the wrong sign", MOVED, f"-{MOVED}", "SGD subtracts"),
        ("a sum", MOVED, "before - after", "What makes it a mean?"),
        (
            "its own",
            MOVED,
            "before - after",
            REDUCE,
            "pass",
            "How does it learn about the others?",
        ),
        ("the mean of the parameters", MOVED, MEAN_AFTER, "How far have they moved?"),
        (
            "subtracts the sum",
            MOVED,
            "after.clone()",
            "return moved",
            "return before - moved",
            "Only `after` needs the mean",
        ),
        (
            "reduces what it was given",
            f"moved = {MOVED}",
            "after /= dist.get_world_size(group)",
            REDUCE,
            "dist.all_reduce(after, group=group)",
            "return moved",
            "return before - after",
            "changed `after`",
        ),
        (
            "two all-reduces",
            MOVED,
            "before / dist.get_world_size(group)",
            REDUCE,
            f"other = {MEAN_AFTER}\n{REDUCE}\ndist.all_reduce(other, group=group)",
            "return moved",
            "return moved - other",
            "One message of P values",
        ),
        ("the whole world", REDUCE, "dist.all_reduce(moved)", "a group of two"),
        (
            "float16 on the way",
            MOVED,
            f"({MOVED}).half()",
            "return moved",
            "return moved.to(before.dtype)",
            "expected",
        ),
    ],
}

RIGHT = {
    "10.4": [
        (
            "repaired where it was wrong",
            """
def buckets(sizes, cap):
    found, next_tensor = [], 0
    while next_tensor < len(sizes):
        room, bucket = cap, []
        for number in range(next_tensor, len(sizes)):
            if sizes[number] > room and bucket:
                break
            bucket.append(number)
            room -= sizes[number]
            next_tensor += 1
        found.append(bucket)
    return found
""",
        ),
    ],
    "10.3": [
        (
            "the mean of after first",
            MOVED,
            MEAN_AFTER,
            "return moved",
            "return before - moved",
        ),
    ],
}
