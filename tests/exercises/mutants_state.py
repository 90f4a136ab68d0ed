"""Wrong answers of kinds that several exercises share: state, kinds of values, degenerate input."""

from tests.exercises import mutants_05_gradients, mutants_08_accuracy, mutants_09
from tests.exercises import mutants_09_stages as stages
from tests.exercises import mutants_10 as talk
from tests.exercises.mutants_08_accuracy import _accuracy
from tests.exercises.mutants_09 import _accumulate, _alternating
from tests.exercises.mutants_09_stages import _clip, _split
from tests.exercises.mutants_10 import _low_rank, _top_k, _two

_PARTS = (
    "total = 0.0",
    "for x, y in zip(inputs.chunk(microbatches), targets.chunk(microbatches)):",
    "    part = loss(model(x), y) * (len(x) / len(inputs))",
)
_GRAM = (
    "p[:, 0] /= p[:, 0].norm()\n"
    "    for i in range(1, p.shape[1]):\n"
    "        p[:, i] -= p[:, :i] @ (p[:, :i].T @ p[:, i])\n"
    "        p[:, i] /= p[:, i].norm()"
)

MUTANTS = {
    "08.1": [
        *mutants_08_accuracy.MUTANTS["08.1"],
        (
            "percent",
            _accuracy(
                "total = real.sum()", "dist.all_reduce(total)", "return 100 * total.item() / size"
            ),
            "That is a percentage",
        ),
    ],
    "09.1": [
        *mutants_09.MUTANTS["09.1"],
        (
            "one backward at the end",
            _accumulate(
                *_PARTS, "    total = total + part", "total.backward()", "return total.item()"
            ),
            "activations were held",
        ),
        (
            "one row at a time",
            _accumulate(
                "total = 0.0",
                "for x, y in zip(inputs.split(1), targets.split(1)):",
                "    part = loss(model(x), y) * (len(x) / len(inputs))",
                "    part.backward()",
                "    total += part.item()",
                "return total",
            ),
            "in at most m parts",
        ),
        (
            "evaluation mode",
            _accumulate(
                "model.eval()",
                *_PARTS,
                "    part.backward()",
                "    total += part.item()",
                "return total",
            ),
            "left in evaluation mode",
        ),
        (
            "clears what was there",
            _accumulate(
                "model.zero_grad()",
                *_PARTS,
                "    part.backward()",
                "    total += part.item()",
                "return total",
            ),
            "not that of the whole batch",
        ),
    ],
    "09.2": [
        *mutants_09.MUTANTS["09.2"],
        (
            "a tuple",
            _alternating("min(stages - 1 - stage, microbatches)").replace(
                "return order", "return tuple(order)"
            ),
            "returned a tuple, expected a list",
        ),
        (
            "the stage as the chunk",
            _alternating(
                "min(stages - 1 - stage, microbatches)", 'Action("F", warm_up + i, stage)'
            ),
            "The chunk stays 0",
        ),
    ],
    "09.3": [
        *stages.MUTANTS["09.3"],
        (
            "clips if its own norm is too large",
            _clip(
                share="own = squares.sqrt()\n    " + stages._SHARE,
                scale=stages._SCALE.replace("if norm >", "if own >"),
            ),
            "this rank's own norm",
        ),
    ],
    "09.4": [
        *stages.MUTANTS["09.4"],
        ("a gradient with a graph", _split(detach="pass"), "has a graph of its own"),
        (
            "state on the class",
            _split(put_off="SplitLinear.x = x; ctx.put_off(later)").replace(
                "def later():",
                "def later():\n            inputs = SplitLinear.x.reshape(-1, x.shape[-1])",
            ),
            "Each call needs its own x",
        ),
    ],
    "10.1": [
        *talk.MUTANTS["10.1"],
        ("places as float32", _top_k(_two(places="torch.float32")), "up to 2^24"),
        (
            "a list of values",
            _top_k(back="(total / world).tolist(), left"),
            "a list, expected a Tensor",
        ),
    ],
    "10.2": [
        *talk.MUTANTS["10.2"],
        ("q as a list", _low_rank(next_q="q.tolist()"), "expected a Tensor"),
        ("Gram-Schmidt without a guard", _low_rank(orthonormal=_GRAM), "Is a column of p 0 / 0?"),
        (
            "one buffer for all calls",
            _low_rank(
                orthonormal="p = torch.linalg.qr(p).Q; low_rank.__dict__.setdefault('b', {})",
                mean="low_rank.b.setdefault((whole.shape, q.dtype), whole.clone()).copy_(p @ q.T)",
            ),
            "two calls gave answers in the same memory",
        ),
    ],
}

RIGHT = {
    "05.4": [
        (
            "a number of NumPy",
            mutants_05_gradients._norm(
                "import numpy",
                "for s in here: total += s.double().square().sum()",
                "dist.all_reduce(total)",
                "return numpy.sqrt(numpy.float64(total.item()))",
            ),
        )
    ],
    "09.3": [
        (
            "two loops over the parameters",
            _clip(
                scale="for each in [p.grad for p in parameters if p.grad is not None]:\n"
                "        each.mul_(min(1.0, max_norm / norm.item()))"
            ),
        )
    ],
    "10.1": [
        (
            "halves rounded up",
            _top_k(count="max(1, int(share * len(whole) + 0.5))"),
        )
    ],
}
