"""A hook that averages the gradient."""

import torch.distributed as dist
from torch import nn


def average_gradients(module: nn.Module) -> None:
    """From now on `backward()` leaves the mean over all ranks in the `.grad` of each parameter."""
    for parameter in module.parameters():  # a tied parameter comes once
        if parameter.requires_grad:
            parameter.register_post_accumulate_grad_hook(average)


def average(parameter: nn.Parameter) -> None:
    """Called by autograd when the gradient of a parameter is complete."""
    parameter.grad /= dist.get_world_size()
    dist.all_reduce(parameter.grad)
