"""Plausible wrong answers to exercises 09.3 and 09.4, and right ones of another kind."""

_CLIP = """
import torch
import torch.distributed as dist

def clip_grad_norm(parameters, max_norm, group=None):
    gradients = [each.grad for each in parameters if each.grad is not None]
    squares = torch.zeros((), dtype=torch.float64)
    for gradient in gradients:
        squares += gradient.double().square().sum()
    {share}
    norm = squares.sqrt()
    {scale}
    return norm
"""
_SHARE = "dist.all_reduce(squares, group=group)"
_SCALE = (
    "if norm > max_norm:\n        for each in gradients:\n            each.mul_(max_norm / norm)"
)


def _clip(share: str = _SHARE, scale: str = _SCALE) -> str:
    return _CLIP.format(share=share, scale=scale)


_SPLIT = """
import torch
from torch.nn.functional import linear

class SplitLinear(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, bias, put_off):
        ctx.save_for_backward(x, weight)
        ctx.bias, ctx.put_off = bias, put_off
        return linear(x, weight, bias)

    @staticmethod
    def backward(ctx, gradient):
        x, weight = ctx.saved_tensors
        {detach}
        bias = ctx.bias
        rows, inputs = {rows}

        def later():
            {weight}
            {bias}

        {put_off}
        return {back}

def add(parameter, gradient):
    if parameter.requires_grad:
        parameter.grad = gradient if parameter.grad is None else parameter.grad + gradient
"""
_PARTS = {
    "detach": "x = x.detach()",
    "rows": "gradient.reshape(-1, len(weight)), x.reshape(-1, x.shape[-1])",
    "weight": "add(weight, rows.T @ inputs)",
    "bias": "bias is None or add(bias, rows.sum(0))",
    "put_off": "ctx.put_off(later)",
    "back": "gradient @ weight, None, None, None",
}


def _split(**changed: str) -> str:
    return _SPLIT.format(**(_PARTS | changed))


MUTANTS = {
    "09.3": [
        ("each stage alone", _clip(share="pass"), "norm of this rank alone"),
        (
            "norms added",
            _clip(
                share="squares = squares.sqrt()\n    dist.all_reduce(squares, group=group)"
            ).replace("norm = squares.sqrt()", "norm = squares"),
            "You can't add norms",
        ),
        (
            "the mean over ranks",
            _clip(share=_SHARE + "\n    squares /= dist.get_world_size(group)"),
            "Is that a mean over the ranks?",
        ),
        ("the group forgotten", _clip(share="dist.all_reduce(squares)"), "a pair"),
        (
            "always scaled",
            _clip(scale="for each in gradients:\n        each.mul_(max_norm / norm)"),
            "nothing to clip",
        ),
        ("never scaled", _clip(scale="pass"), "By which factor?"),
        (
            "by its own norm",
            _clip(
                share="own = squares.sqrt()\n    " + _SHARE,
                scale="for each in gradients:\n        each.mul_(min(1, max_norm / own))",
            ),
            "this rank's own norm",
        ),
        (
            "squares in the gradients' dtype",
            _clip().replace("gradient.double().square().sum()", "gradient.square().sum()"),
            "In which dtype?",
        ),
        (
            "all gradients sent",
            _clip(
                share="everyone = [None] * dist.get_world_size(group)\n"
                "    dist.all_gather_object(everyone, gradients, group)\n"
                "    squares = sum(\n"
                "        (each.double().square().sum() for part in everyone for each in part),\n"
                "        torch.zeros((), dtype=torch.float64),\n"
                "    )"
            ),
            "Only one number.",
        ),
        (
            "the norm after",
            _clip().replace("    return norm", "    return norm.clamp(max=max_norm)"),
            "the norm before clipping",
        ),
        (
            "new gradients",
            _clip(scale="pass")
            .replace("gradients = [", "parameters = list(parameters)\n    gradients = [")
            .replace(
                "    return norm",
                "    for each in parameters:\n"
                "        if each.grad is not None and norm > max_norm:\n"
                "            each.grad = each.grad * (max_norm / norm)\n"
                "    return norm",
            ),
            "Scale it in place",
        ),
    ],
    "09.4": [
        ("nothing put off", _split(put_off="later()"), "Only the gradient of x is due in B"),
        (
            "only the addition put off",
            _split(
                rows=_PARTS["rows"] + "\n        product = rows.T @ inputs",
                weight="add(weight, product)",
            ),
            "matrix products",
        ),
        ("written over", _split(weight="weight.grad = rows.T @ inputs"), "was given a gradient"),
        (
            "transposed",
            _split(back="gradient @ weight.T, None, None, None"),
            "raised RuntimeError",
        ),
        ("no bias", _split(bias="pass"), "bias.grad is wrong after W"),
        (
            "two dimensions",
            _split(rows="gradient, x"),
            "raised RuntimeError",
        ),
        (
            "frozen ones too",
            _split().replace("    if parameter.requires_grad:\n        parameter", "    parameter"),
            "frozen weight was given a gradient",
        ),
        (
            "what was there is lost",
            _split(bias="bias is None or set_(bias, rows.sum(0))").replace(
                "def add(",
                "def set_(parameter, gradient):\n    if parameter.requires_grad:\n"
                "        parameter.grad = gradient\n\ndef add(",
            ),
            "lost what was in it",
        ),
        ("twice", _split(put_off="ctx.put_off(later), ctx.put_off(later)"), "called 2 times"),
    ],
}

RIGHT = {
    "09.3": [
        (
            "with an epsilon, in float32",
            _clip(
                scale="factor = min(1.0, max_norm / (norm.item() + 1e-6))\n"
                "    for each in gradients if factor < 1 else []:\n        each *= factor"
            )
            .replace("torch.float64", "torch.float32")
            .replace("gradient.double()", "gradient.float()"),
        ),
    ],
    "09.4": [
        (
            "by einsum and two lists",
            _split(weight='add(weight, torch.einsum("rk,rn->kn", rows, inputs))'),
        ),
    ],
}
