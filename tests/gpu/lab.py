"""The lab's Transformer on one GPU, in bfloat16 and compiled: tokens per second, and the MFU.

Run as a rank of `launch`, which finds `transformer.py` and `flops.py` in `workers/`.
"""

import sys
import time

import torch
from flops import step_flops
from torch.nn.functional import cross_entropy
from transformer import Transformer

from nbtorchrun.worker import device, init, report

PEAKS = {"H100": 989e12, "H200": 989e12, "A100": 312e12}  # dense bfloat16, NVIDIA's data sheets
LARGE = (8192, 1024, 16, 4096, 8, 512, 16)
SMALL = (64, 16, 2, 32, 1, 8, 2)


def train_step(model: torch.nn.Module, tokens: torch.Tensor, bf16: bool) -> torch.Tensor:
    """The loss after forward and backward."""
    with torch.autocast(tokens.device.type, torch.bfloat16, enabled=bf16):
        logits = model(tokens[:, :-1])
    loss = cross_entropy(logits.flatten(0, 1).float(), tokens[:, 1:].flatten())
    loss.backward()
    return loss


def measure(bf16: bool, compiled: bool, sizes: tuple[int, ...], steps: int) -> dict[str, float]:
    """Tokens and FLOPs per second of a training step, without the first ones."""
    vocab, width, heads, hidden, layers, length, batch = sizes
    model = Transformer(vocab, width, heads, hidden, layers, length, 0.0).to(device())
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    call = torch.compile(model) if compiled else model
    tokens = torch.randint(vocab, (batch, length + 1), device=device())
    start = time.perf_counter()
    for step in range(-3, steps):
        if step == 0:
            torch.cuda.synchronize()
            start = time.perf_counter()
        train_step(call, tokens, bf16)
        optimizer.step()
        optimizer.zero_grad()
    torch.cuda.synchronize()
    seconds = (time.perf_counter() - start) / steps
    config = dict(vocab_size=vocab, d_model=width, d_ff=hidden, num_layers=layers)
    return {
        "tokens": batch * length / seconds,
        "flops": step_flops(config, batch, length) / seconds,
    }


if __name__ == "__main__":
    init(ranks=1)
    torch.manual_seed(0)
    name = torch.cuda.get_device_name()
    peak = next((peak for card, peak in PEAKS.items() if card in name), None)
    sizes, steps = (SMALL, 2) if "--small" in sys.argv else (LARGE, 20)
    for bf16 in (False, True):
        for compiled in (False, True) if "--small" not in sys.argv else (False,):
            found = measure(bf16, compiled, sizes, steps)
            share = found["flops"] / peak if peak else None
            report(bf16=bf16, compiled=compiled, card=name, mfu=share, **found)
