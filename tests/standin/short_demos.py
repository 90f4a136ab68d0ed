"""How a demo is made short, and which demos a pretended GPU tells nothing about."""

SMALL = {  # options that make a demo short; the others are short enough
    "cnn": "--epochs 1",
    "data_parallel": "--epochs 1 --batch 300",
    "tape": "--steps 20",
    "tensor_parallel": "--steps 3",
    "transformer": "--steps 2 --test-windows 50 --layers 1",
    "inference": "--size 8",
    "resnet": "--epochs 1 --limit 64 --size 8",
    "trainer": "--steps 2",
    "pipeline": "--epochs 2",
    "compression": "--steps 10",
    "experts": "--steps 3",
    "long_context": "--length 64",
}
# These use no GPU: gpus.ranks_for says so of them, or they only calculate.
WITHOUT = {"hello", "links", "parameter_server", "audit", "plan"}
UNSEEN = {"deepspeed"}  # it asks the driver itself
