"""The FLOPs of a step (notebook 13): PyTorch's counter and the formula 6P + 12LHQT."""

from dataclasses import dataclass
from types import SimpleNamespace

import pytest
import torch
from torch.nn.functional import cross_entropy
from torch.utils.checkpoint import checkpoint
from torch.utils.flop_counter import FlopCounterMode

from course_utils import load_worker

SMALL = {"vocab_size": 13, "d_model": 12, "num_heads": 3, "d_ff": 20, "num_layers": 3}
SHAPES = [(1, 1), (2, 7), (5, 9), (3, 16)]


@pytest.fixture(scope="module")
def step_flops():
    return load_worker("flops.py").step_flops


def counted(batch: int, length: int, recompute: bool) -> int:
    model = load_worker("transformer.py").Transformer(**SMALL, dropout=0.0)
    if recompute:
        for layer in model.layers:
            plain = layer.forward
            layer.forward = lambda x, mask, f=plain: checkpoint(f, x, mask, use_reentrant=False)
    tokens = torch.zeros(batch, length + 1, dtype=torch.int64)
    with FlopCounterMode(display=False) as counter:
        logits = model(tokens[:, :-1]).flatten(0, 1)
        cross_entropy(logits, tokens[:, 1:].flatten()).backward()
    return counter.get_total_flops()


@pytest.mark.parametrize("recompute", [False, True])
@pytest.mark.parametrize(("batch", "length"), SHAPES)
def test_the_formula_is_what_the_counter_counts(step_flops, batch, length, recompute):
    assert step_flops(SMALL, batch, length, recompute) == counted(batch, length, recompute)


@pytest.mark.parametrize(("batch", "length"), SHAPES)
def test_the_formula_is_palms(step_flops, batch, length):
    model = load_worker("transformer.py").Transformer(**SMALL, dropout=0.0)
    linears = [m for m in model.modules() if isinstance(m, torch.nn.Linear)]
    P = sum(m.weight.numel() for m in linears)
    L, H = SMALL["num_layers"], SMALL["num_heads"]
    Q = SMALL["d_model"] // H
    assert step_flops(SMALL, batch, length) == batch * length * (6 * P + 12 * L * H * Q * length)


def test_recomputation_costs_a_forward_of_the_layers(step_flops):
    none = step_flops(SMALL | {"num_layers": 0}, 2, 7)
    layers = step_flops(SMALL, 2, 7) - none
    assert 3 * (step_flops(SMALL, 2, 7, recompute=True) - none) == 4 * layers
    assert step_flops(SMALL | {"num_layers": 0}, 2, 7, recompute=True) == none


def test_a_config_may_be_a_dict_or_an_object(step_flops):
    @dataclass
    class Config:
        vocab_size: int = 13
        d_model: int = 12
        num_heads: int = 3
        d_ff: int = 20
        num_layers: int = 3

    expected = step_flops(SMALL, 2, 7)
    assert step_flops(Config(), 2, 7) == step_flops(SimpleNamespace(**SMALL), 2, 7) == expected
