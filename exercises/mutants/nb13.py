"""Wrong answers to the exercises of notebook 13, and right ones of another kind."""

WISHES = "torch.tensor(int(wish), device=device())"
REDUCE = "dist.all_reduce(wishes, dist.ReduceOp.MAX, group=group)"
ANSWER = "bool(wishes)"
WHEN = "first < last"
READ = "(number, first - begin, last - begin)"
LOST = "save / interval + (interval / 2 + restart) / between"
SOUND = "path.exists() and hashlib.sha256(path.read_bytes()).hexdigest() == sha256"
END = 'each["sha256"])]'

MUTANTS = {
    "13.1": [
        ("its own wish", REDUCE, "pass", "learn about the others?"),
        ("all must wish", "ReduceOp.MAX", "ReduceOp.MIN", "must all of them wish it?"),
        (
            "only who wishes calls",
            REDUCE,
            f"if not wish:\n    return False\n{REDUCE}",
            "learn about the others?",
        ),
        (
            "rank 0 decides",
            REDUCE,
            "dist.broadcast(wishes, group=group, group_src=0)",
            "expected",
        ),
        ("the whole world", ", group=group", "", "the group that was passed in"),
        ("does not wait", "group=group", "group=group, async_op=True", ""),
        (
            "a megabyte",
            WISHES,
            "torch.full((250_000,), float(wish))",
            ANSWER,
            "bool(wishes[0] > 0)",
            "One number per rank is enough",
        ),
        (
            "an average that is rounded",
            WISHES,
            "torch.tensor(float(wish))",
            REDUCE,
            "dist.all_reduce(wishes, group=group)",
            ANSWER,
            "round(wishes.item() / dist.get_world_size(group)) == 1",
            "expected True",
        ),
    ],
    "13.2": [
        (
            "counts from the tensor's beginning",
            READ,
            "(number, first, last)",
            "Count from the beginning of the piece",
        ),
        ("empty reads too", WHEN, "first <= last", "a read of no values"),
        (
            "the last included",
            READ,
            "(number, first - begin, last - begin - 1)",
            "`last`",
        ),
        ("one piece only", "return found", "return found[:1]", "end in another?"),
        (
            "whole pieces",
            READ,
            "(number, 0, end - begin)",
            "may begin or end inside a piece",
        ),
        (
            "only pieces that lie inside",
            WHEN,
            "start <= begin < end <= stop",
            "end in another?",
        ),
        (
            "two numbers",
            READ,
            "(first - begin, last - begin)",
            "three numbers for each read",
        ),
        (
            "pieces of equal size",
            "first, last =",
            "size = pieces[0][1] - pieces[0][0]\n"
            "begin, end = number * size, (number + 1) * size\n"
            "first, last =",
            "expected",
        ),
    ],
    "13.3": [
        ("a whole interval", "interval / 2", "interval", "in the middle of an interval"),
        ("no restart", "(interval / 2 + restart)", "interval / 2", "have to restart"),
        ("no saves", "save / interval + ", "", "You left out the saves"),
        ("no failures", LOST, "save / interval", "You left out the failures"),
        ("what is left", LOST, f"1 - ({LOST})", "is left"),
        ("percent", LOST, f"100 * ({LOST})", "percent"),
        (
            "a restart per interval",
            LOST,
            "(save + restart) / interval + interval / 2 / between",
            "once per failure",
        ),
        (
            "seconds per interval",
            LOST,
            f"interval * ({LOST})",
            "Those are seconds",
        ),
        ("not a number", LOST, "float('nan')", "nan"),
    ],
    "13.4": [
        ("only missing files", SOUND, "path.exists()", "Compare each file with its entry"),
        (
            "only sizes",
            END,
            'each["bytes"])]',
            SOUND,
            "path.exists() and path.stat().st_size == sha256",
            "Its size is right",
        ),
        (
            "a missing file raises an error",
            "path.exists() and ",
            "",
            "A file that is not there is damaged, too",
        ),
        ("only the first", END, f"{END}[:1]", "Name every damaged file"),
        ("in another order", END, f"{END}[::-1]", "in the order of the manifest"),
        (
            "whether there is one",
            "return [",
            "return [] != [",
            "list with the names",
        ),
        (
            "every empty file",
            SOUND,
            "path.exists() and path.stat().st_size",
            "an empty one may be right",
        ),
        (
            "any hash of the manifest will do",
            "== sha256",
            'in [each["sha256"] for each in entries]',
            "Whose hash do you compare with?",
        ),
        ("nothing is ever damaged", SOUND, "True", "Compare each file with its entry"),
        (
            "what is not in the manifest, too",
            "return [",
            'known = [each["file"] for each in entries]\n'
            "return [path.name for path in sorted(folder.iterdir()) if path.name not in known] + [",
            "cannot be damaged",
        ),
    ],
}

RIGHT = {
    "13.1": [
        (
            "a sum",
            WISHES,
            "torch.tensor([float(wish)])",
            REDUCE,
            "dist.all_reduce(wishes, group=group)",
            ANSWER,
            "wishes.item() > 0",
        ),
        (
            "an all-gather, and a tensor as the answer",
            REDUCE,
            "every = [torch.zeros_like(wishes) for _ in range(dist.get_world_size(group))]\n"
            "dist.all_gather(every, wishes, group)",
            ANSWER,
            "torch.stack(every).any()",
        ),
    ],
    "13.2": [
        (
            "lists in place of tuples",
            READ,
            "[number, first - begin, last - begin]",
        ),
        (
            "with sets",
            "def overlaps(pieces, start, stop):\n"
            "    wanted = set(range(start, stop))\n"
            "    hits = [[v - b for v in range(b, e) if v in wanted] for b, e in pieces]\n"
            "    return [(n, h[0], h[-1] + 1) for n, h in enumerate(hits) if h]\n",
        ),
    ],
    "13.3": [
        (
            "over a common denominator",
            LOST,
            "(save * between + interval * (interval / 2 + restart)) / (interval * between)",
        ),
    ],
    "13.4": [
        (
            "by the hash",
            """
import hashlib

def damaged(folder, entries):
    found = []
    for entry in entries:
        path = folder / entry["file"]
        if not path.exists() or hashlib.sha256(path.read_bytes()).hexdigest() != entry["sha256"]:
            found.append(entry["file"])
    return found
""",
        ),
        (
            "the size first",
            "(path, sha256)",
            "(path, size, sha256)",
            "path.exists() and ",
            "path.exists() and path.stat().st_size == size and ",
            END,
            f'each["bytes"], {END}',
        ),
    ],
}
