"""Shakes rounding: on PYTHONPATH, it lets every second rank round its float64 sums otherwise.

What a rank computes with is replaced only once its script begins, so nothing of the course knows.
"""

import importlib.util
import os
import random
import sys

RANKS_SIDE = "nbtorchrun.worker.calls"  # each rank calls its `watch` just before the script
EPSILON = 2.0**-52
# What sums, or calls a library's function: other operations round alike on every CPU.
ROUNDED = """
    mm addmm bmm baddbmm dot mv addmv sum mean var std var_mean cumsum prod norm linalg_vector_norm
    exp log log1p tanh sigmoid erf sin cos pow gelu silu _softmax _log_softmax logsumexp
    native_layer_norm native_layer_norm_backward native_batch_norm native_batch_norm_backward
    convolution convolution_backward embedding_dense_backward nll_loss_forward
    _softmax_backward_data _log_softmax_backward_data gelu_backward _fused_rms_norm
""".split()


def shake() -> None:
    """Multiply each such result of this process by 1 plus or minus an epsilon."""
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils._pytree import tree_leaves

    chance = random.Random(int(os.environ["RANK"]))

    class Shaken(TorchDispatchMode):
        def __torch_dispatch__(self, operator, types, arguments=(), named=None):
            if any(kind.__name__ == "DTensor" for kind in types):
                return NotImplemented  # its local operations come back here
            found = operator(*arguments, **(named or {}))
            if operator.namespace == "aten" and operator._schema.name[6:] in ROUNDED:
                for part in tree_leaves(found):
                    if type(part) is torch.Tensor and part.dtype == torch.float64:
                        part.detach().mul_(1 + chance.choice((-1, 1)) * EPSILON)
            return found

    Shaken().__enter__()


class Finder:
    """Lets the ranks' side of the course shake, once it is imported."""

    def find_spec(self, name, path=None, target=None):
        if name != RANKS_SIDE:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        load = spec.loader.exec_module

        def exec_module(module):
            load(module)
            watch = module.watch

            def watch_and_shake(*arguments, **named):
                watch(*arguments, **named)
                if int(os.environ.get("RANK", "0")) % 2:
                    shake()

            module.watch = watch_and_shake

        spec.loader.exec_module = exec_module
        return spec


sys.meta_path.insert(0, Finder())
