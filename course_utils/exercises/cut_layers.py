"""What the probes of notebook 06 share: a layer's output, its gradients, and what it sends."""

import warnings
from collections.abc import Callable
from typing import Any

import torch

from course_utils.exercises.calls import same
from course_utils.meter import meter


def measure(
    layer: Callable, tensors: dict[str, torch.Tensor], factors: torch.Tensor, *flags: bool
) -> dict[str, Any]:
    """Call a layer, take the gradients of (output * factors).sum(), and look at both passes.

    Args:
        layer: called with the tensors and the flags.
        tensors: by name; their gradients are taken.
        factors: the gradient of each output: as the output, or broadcast to it.
        flags: passed on.
    """
    leaves = {name: tensor.clone().requires_grad_() for name, tensor in tensors.items()}
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        with meter() as forward:
            y = layer(*leaves.values(), *flags)
        changed = []
        with meter() as backward:
            if fits(y, factors):
                given = factors.expand(y.shape).contiguous().clone()
                y.backward(given)
                changed += [] if same(given, factors.expand(y.shape)) else ["the gradient"]
    changed += [name for name, leaf in leaves.items() if not same(leaf, tensors[name])]
    gradients = {name: leaf.grad for name, leaf in leaves.items()}
    shown = [y, *gradients.values()]
    return {
        "y": y.detach() if isinstance(y, torch.Tensor) else type(y).__name__,
        "gradients": gradients,
        "dtype": str(factors.dtype).removeprefix("torch."),
        "dtypes": sorted({str(x.dtype)[6:] for x in shown if isinstance(x, torch.Tensor)}),
        "changed": changed,
        "forward": [[call.name, call.bytes] for call in forward.calls],
        "backward": [[call.name, call.bytes] for call in backward.calls],
        "bytes": sum(call.bytes for call in [*forward.calls, *backward.calls]),
        "warned": any("autograd kernel" in str(warning.message) for warning in said),
    }


def fits(y: Any, factors: torch.Tensor) -> bool:
    """Whether a gradient can be taken: a tensor that has one, of the size it should have."""
    return (
        isinstance(y, torch.Tensor)
        and y.requires_grad
        and y.dim() > 0
        and y.size(-1) == factors.size(-1)
        and y.dim() >= factors.dim()
    )
