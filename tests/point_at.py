"""What docs/instructors.md points at in each demo's output, and where that stands there.

By demo: a part of the column "point at", and a pattern of what the demo prints. A part that a
claim shows is in `CLAIMS`: a demo measures its claims after its own run.
"""

import re

PRINTED = {
    "hello": {"the sum does not": r"together we have \d+"},
    "collectives": {"who has what before and after": r"broadcast +0 1\b[\s\S]*→"},
    "tape": {
        "no `torch.autograd` in it": r"torch\.autograd was off",
        "the digits are learned": r"held-out digits recognised: [\d.]+%",
    },
    "data_parallel": {"the same losses as one device": r"one device ([\d.]+)  DataParallel \1 "},
    "ddp": {
        "messages and bytes of five versions": r"(\d [^\n]+ messages +[\d,]+ bytes +\d+ ms\n){5}"
    },
    "ring": {"which chunk each rank sends in which step": r"chunk sent in each step:( \d)+\n"},
    "links": {
        "the time grows with N": r"8 hosts take [\d.]+ times as long as 2 through rank 0",
        "around a ring": r"[\d.]+ times by the ring",
    },
    "fsdp": {
        "the bytes each strategy holds between steps and moves in one step": (
            r"fully_shard +[\d.]+ MB = [\d.]+ P +[\d.]+ MB"
        )
    },
    "tensor_parallel": {
        "fewer parameters per rank": r"this rank holds [\d,]+ parameters",
        "the same loss": r"step +\d+  loss [\d.]+",
    },
    "lab": {"rank 0's loss in every batch": r"Epoch 0, Batch 0, Loss: [\d.]+"},
    "resnet": {"exact evaluation": r"accuracy [\d.]+% of 360"},
    "inference": {
        "predictions in the order of the data set": r"360 of 360 are one process's answers",
        "how much sooner they come": (
            r"one rank: [\d,]+ images/s; \d+ ranks: [\d,]+ images/s\n[^\n]*times as fast as one"
        ),
    },
    "trainer": {
        "Hugging Face's Trainer beside our loop": r"step +our loop +Trainer",
        "the step at which their losses part": (
            r"Trainer: (parts from our loop at step \d+|never parts)"
        ),
    },
    "pipeline": {
        "the same loss as on one rank": (
            r"ranks +loss in step 1: (.*)\n.*one process +loss in step 1: \1\n"
        )
    },
    "transformer": {"tokens per second": r"[\d,]+ tokens/s"},
    "compression": {
        "twelve ways to train: what each sends per step, and its loss": (
            r"(sends +\d+ kB a step, loss [\d.]+ after \d+ steps\n[^\n]*){12}"
        )
    },
    "parameter_server": {
        "how much traffic a server carries": (
            r"serves: carries [\d.]+ MB in a step, [\d.]+ times the model"
        ),
        "how stale gradients get": (
            r"staleness of \d+ gradients: [\d.]+ steps on average, at most \d+"
        ),
    },
    "long_context": {
        "its bytes and its peak memory, for five ways": (
            r"(q \(1, \d+, 8, 16\) +sends +[\d.]+ MB +peak +[\d.]+ MB\n[^\n]*){5}"
        )
    },
    "experts": {
        "without balance, with an auxiliary loss, and with a bias": (
            r"none [^\n]*even shares\n[^\n]*loss [^\n]*even shares\n[^\n]*bias [^\n]*even shares"
        )
    },
    "straggler": {
        "the longest all-reduce is not the late rank's": (
            r"naive blame: +rank (\d)[^\n]*\n[^\n]*straggler: +rank (?!\1)\d"
        )
    },
    "elastic": {
        "is killed in the middle of an epoch": r"rank \d was killed by SIGKILL",
        "the same bits": r"same bits: True",
    },
    "plan": {
        "the best cut": r"dp\d+ pp\d+ cp\d+ tp\d+ rows\d+ zero\d",
        "how flat the front is": r"takes [\d.]+% longer per step than the first",
    },
    "two_engines": {
        "the answers that are right": r"version +\d+: +\d+% of the answers are right",
        "the gap": r"largest gap so far \de-1[3-6]",
    },
    "audit": {"what ratio, cosine and cause say": r"ratio +cosine +likely cause"},
}
CLAIMS = {
    "collectives": {"all-gather is all-reduce": r"claim all-reduce = reduce-scatter \+ all-gather"},
    "resnet": {"resumes to the last bit": r"claim resuming changes nothing"},
}


def not_shown(name: str, output: str, parts: dict[str, dict[str, str]] = PRINTED) -> list[str]:
    """The parts of the column that a demo's output does not show."""
    return [part for part, shown in parts.get(name, {}).items() if not re.search(shown, output)]
