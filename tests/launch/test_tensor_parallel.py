"""Cutting a model (notebook 06): what it keeps of the whole one, and what it refuses."""

HEAD = """\
import torch, torch.distributed as dist
from torch import nn
from sequence_parallel import SequenceParallelTransformer
from tensor_parallel import ParallelTransformer, vocab_parallel_cross_entropy
from tensor_parallel import VocabParallelEmbedding
from transformer import Transformer
from nbtorchrun.worker import init, report
init()
torch.manual_seed(0)
model = Transformer(12, 8, 2, 16, 2, 6)
ids = torch.randint(12, (3, 6))
"""
KEPT = """
model.eval()
model.embedding.requires_grad_(False)
model.out_linear.weight = model.embedding.weight
for kind in (ParallelTransformer, SequenceParallelTransformer):
    cut = kind.from_transformer(model)
    off = (cut(ids) - model(ids)).abs().max().item()
    tied = cut.out_linear.weight is cut.embedding.weight
    report(off=off, tied=tied, frozen=not cut.embedding.weight.requires_grad)
"""
REFUSED = """
def refused(call):
    try:
        call()
    except ValueError as error:
        return str(error)

padded = nn.Embedding(12, 8, padding_idx=0)
logits = torch.zeros(3, 6, 12 // dist.get_world_size())
report(padded=refused(lambda: VocabParallelEmbedding.from_embedding(padded)))
report(target=refused(lambda: vocab_parallel_cross_entropy(logits, torch.full((3, 6), -100))))
"""


def test_a_cut_model_keeps_mode_ties_and_what_is_frozen(worker, launch):
    run = launch(worker("kept.py", HEAD + KEPT), nproc=2)
    assert max(run.series("off")) < 1e-5
    assert all(run.series("tied") + run.series("frozen"))


def test_what_cannot_be_cut_or_is_no_token_is_refused(worker, launch):
    run = launch(worker("refused.py", HEAD + REFUSED), nproc=2)
    assert "padding_idx" in run.series("padded")[0]
    assert "token ids out of range: they go from -100 to -100" in run.series("target")[0]


REPLICATED = """
from tensor_parallel import RowParallelLinear
torch.manual_seed(dist.get_rank())

def differ(kind):
    model = kind(12, 8, 2, 16, 2, 6)
    whole = dict(model.named_buffers())
    for name, module in model.named_modules():
        if isinstance(module, (RowParallelLinear, nn.LayerNorm)):
            whole[f"{name}.bias"] = module.bias.detach()
    for name, value in whole.items():
        first = value.clone()
        dist.broadcast(first, 0)
        if not torch.equal(first, value):
            yield name

report(differ=[*differ(ParallelTransformer), *differ(SequenceParallelTransformer)])
"""


def test_what_every_rank_holds_whole_begins_equal_whatever_the_seeds(worker, launch):
    run = launch(worker("replicated.py", HEAD + REPLICATED), nproc=2)
    assert run.series("differ", rank=1) == [[]]
