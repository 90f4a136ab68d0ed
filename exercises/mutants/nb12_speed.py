"""Wrong answers to 12.4, and right ones of another kind."""

BATCHES = "inputs.split(32), targets.split(32)"
UPDATE = "optimizer.step()"

MUTANTS = {
    "12.4": [
        ("imported", "from slow_training import train\n", "Write your own"),
        (
            "the slow one",
            f"for x, y in zip({BATCHES}, strict=True):",
            "for first in range(0, len(images), 32):\n"
            "    batch = images[first : first + 32]\n"
            "    x = torch.tensor([[byte / 255 for byte in image] for image in batch])\n"
            "    y = torch.tensor(labels[first : first + 32])",
            "Which timer is the largest?",
        ),
        ("fewer epochs", "range(epochs)", "range(epochs // 2)", "losses, expected"),
        (
            "larger batches",
            BATCHES,
            "inputs.split(64), targets.split(64)",
            "Batches of 32",
        ),
        ("not divided", " / 255", " / 1", "from 0 to 1"),
        (
            "not clipped",
            "nn.utils.clip_grad_norm_(model.parameters(), 1.0)",
            "pass",
            "the update the same",
        ),
        (
            "updated every second step",
            "for _ in",
            "for epoch in",
            UPDATE,
            f"epoch % 2 or {UPDATE}",
            "Only the time may change",
        ),
        (
            "the last update left out",
            UPDATE,
            f"len(losses) < 39 and {UPDATE}",
            "last step's update",
        ),
        ("a tensor", "return losses", "return torch.tensor(losses)", "a list of losses"),
    ],
}

RIGHT = {
    "12.4": [
        (
            "decoded once, as slowly as before",
            "pixels.view(len(images), -1) / 255",
            "torch.tensor([[p / 255 for p in image] for image in images])",
        ),
        ("decoded in every epoch, but fast", " / 255", "", "model(x)", "model(x / 255)"),
    ],
}
