"""The tape of notebook 01, taken from its cells, held against torch on random expressions."""

import random

import pytest
import torch

from course_utils import files

SHAPES = [(), (3,), (1,), (2, 3), (2, 1), (1, 3), (4, 2, 3)]  # any two of them broadcast
UNARY = [
    lambda x: -x,
    lambda x: x**2,
    lambda x: (x * x + 1).log(),
    lambda x: (x * 0.3).exp(),
    lambda x: x.tanh(),
    lambda x: (x + 0.1).relu(),
    lambda x: 1 - x / 2,
    lambda x: 2 / (x * x + 1),
]
BINARY = [
    lambda x, y: x + y,
    lambda x, y: x - y,
    lambda x, y: x * y,
    lambda x, y: x / (y * y + 1),
]


@pytest.fixture
def tape():
    module = files.load_worker("tape.py")
    module.trace(False)
    return module


def expression(seed):
    """A random expression, as a function of leaves that are Variables or tensors."""
    chance = random.Random(seed)
    plan = [
        (chance.choice(UNARY), None) if chance.random() < 0.5 else (None, chance.choice(BINARY))
        for _ in range(8)
    ]
    picks = [chance.random() for _ in range(16)]

    def compute(*leaves):
        values, pick = list(leaves), iter(picks)
        for one, two in plan:
            x = values[int(next(pick) * len(values))]
            values.append(one(x) if one else two(x, values[int(next(pick) * len(values))]))
        return sum((value.mean() for value in values[1:]), values[0].mean())

    return compute


def leaves_of(seed, count=3):
    chance, numbers = random.Random(seed), torch.Generator().manual_seed(seed)
    shapes = chance.choices(SHAPES, k=count)
    return [torch.randn(shape, generator=numbers, dtype=torch.float64) for shape in shapes]


def both(tape, f, tensors):
    tape.reset_tape()
    ours = [tape.Variable(x.clone(), name=f"x{i}") for i, x in enumerate(tensors)]
    theirs = [x.clone().requires_grad_() for x in tensors]
    return (ours, f(*ours)), (theirs, f(*theirs))


def same(variable, tensor):
    expected = torch.zeros(()) if tensor is None else tensor
    got = torch.zeros_like(expected) if variable is None else variable.value
    assert tensor is None or got.shape == expected.shape
    return torch.allclose(got, expected.detach().to(got.dtype), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.timeout(30)
def test_random_expressions_and_their_first_and_second_derivatives_equal_torch(tape, seed):
    (ours, L), (theirs, loss) = both(tape, expression(seed), leaves_of(seed))
    assert same(L, loss)
    first = tape.grad(L, ours)
    expected = torch.autograd.grad(loss, theirs, create_graph=True, allow_unused=True)
    assert all(map(same, first, expected))

    used = [i for i, gradient in enumerate(first) if gradient is not None]
    length = sum((first[i] * first[i]).sum() for i in used)
    second = tape.grad(length, ours)
    lengths = sum((expected[i] * expected[i]).sum() for i in used)
    if not lengths.requires_grad:  # linear in every leaf
        assert second == [None] * len(ours)
        return
    wanted = torch.autograd.grad(lengths, theirs, allow_unused=True)
    assert all(map(same, second, wanted))


@pytest.mark.parametrize(
    ("f", "shapes"),
    [  # beside those that notebook 01 proves
        (lambda a, b: a @ b, [(3,), (3,)]),
        (lambda a, b: a @ b, [(2, 3), (3,)]),
        (lambda a, b: a @ b, [(3,), (3, 4)]),
        (lambda a, b: a @ b, [(5, 1, 2, 3), (4, 3, 2)]),
        (lambda x: x.sum(-1, keepdim=True), [(2, 3, 4)]),
        (lambda x: x.sum((0, 2)), [(2, 3, 4)]),
        (lambda x: x.mean(), [(2, 3, 4)]),
        (lambda x: x.reshape(6, -1), [(2, 3, 4)]),
        (lambda x: x**0, [(2, 3, 4)]),
    ],
)
def test_shapes_and_axes(tape, f, shapes):
    tensors = [torch.randn(shape, dtype=torch.float64) for shape in shapes]
    (ours, r), (theirs, wanted) = both(tape, f, tensors)
    assert same(r, wanted)
    expected = torch.autograd.grad((wanted * wanted).sum(), theirs)
    assert all(map(same, tape.grad((r * r).sum(), ours), expected))


def test_the_trace_has_the_format_of_the_course_and_can_be_silenced(tape, capsys):
    def run():
        tape.reset_tape()
        a, b = tape.Variable([1.0, 2.0], name="a"), tape.Variable([3.0, 4.0], name="b")
        tape.grad(((a + b) * b).sum(), [a, b])

    run()
    assert capsys.readouterr().out == ""
    tape.trace(True)
    run()
    assert capsys.readouterr().out.splitlines() == [
        *("v0 = add(a, b)", "v1 = mul(v0, b)", "v2 = sum(v1)", "dv2 -----"),
        *("v4 = expand(v3)", "v5 = mul(v4, b)", "v6 = mul(v4, v0)", "v7 = add(v6, v5)"),
        *("dv2_dv2 = v3", "dv2_dv1 = v4", "dv2_dv0 = v5", "dv2_db = v7", "dv2_da = v5"),
        "-----",
    ]


def test_an_entry_holds_names_and_a_chain_rule(tape):
    tape.reset_tape()
    a = tape.Variable.constant([1.0, 2.0], name="a")
    r = a * a
    (entry,) = tape.gradient_tape
    assert (entry.inputs, entry.outputs) == (["a", "a"], [r.name])
    one = tape.Variable(torch.ones(2))
    assert [gradient.value.tolist() for gradient in entry.propagate([one])] == [[1.0, 2.0]] * 2


def test_an_entry_made_by_hand_takes_part(tape):
    tape.reset_tape()
    a = tape.Variable([2.0], name="a")
    r = tape.Variable(a.value * 5, name="r")
    tape.gradient_tape.append(tape.TapeEntry(["a"], ["r"], lambda dL_dr: [dL_dr[0] * 5.0]))
    assert [gradient.value.tolist() for gradient in tape.grad(r.sum(), [a])] == [[5.0]]


def test_what_the_loss_does_not_depend_on_has_no_gradient(tape):
    tape.reset_tape()
    a, b, c = (tape.Variable([1.0], name=name) for name in "abc")
    b * c
    assert tape.grad(a.sum(), [b, c, tape.Variable([1.0])]) == [None] * 3


def changed_in_place(tape, a, b):
    L = (a * b).sum()
    b.value += 1
    return lambda: tape.grad(L, [a])


def replaced(tape, a, b):
    L = (a * b).sum()
    b.value = b.value + 1
    return lambda: tape.grad(L, [a])


def reset_in_between(tape, a, b):
    L = (a * b).sum()
    tape.reset_tape()
    return lambda: tape.grad(L, [a])


def used_after_reset(tape, a, b):
    r = a * b
    tape.reset_tape()
    return lambda: r + a


@pytest.mark.parametrize(
    ("misuse", "error", "said"),
    [
        (lambda tape, a, b: lambda: tape.grad(a * b, [a]), ValueError, "shape \\(2,\\)"),
        (reset_in_between, RuntimeError, "computed before reset_tape"),
        (used_after_reset, RuntimeError, "computed before reset_tape"),
        (changed_in_place, RuntimeError, "value of b was changed"),
        (replaced, RuntimeError, "value of b was changed"),
        (lambda tape, a, b: lambda: a * tape.Variable([1.0, 2.0], "a"), ValueError, "called a"),
        (lambda tape, a, b: lambda: a + "1", TypeError, "combined with a str"),
        (lambda tape, a, b: lambda: a**b, TypeError, "exponent has to be a number"),
    ],
)
def test_misuse_is_answered_clearly(tape, misuse, error, said):
    tape.reset_tape()
    attempt = misuse(tape, tape.Variable([1.0, 2.0], "a"), tape.Variable([3.0, 4.0], "b"))
    with pytest.raises(error, match=said):
        attempt()


def test_a_change_of_a_value_that_no_derivative_needs_is_allowed(tape):
    tape.reset_tape()
    a, b = tape.Variable([1.0, 2.0], name="a"), tape.Variable([3.0, 4.0], name="b")
    L = (a + b).sum()
    b.value += 1
    assert [gradient.value.tolist() for gradient in tape.grad(L, [a, b])] == [[1.0, 1.0]] * 2
