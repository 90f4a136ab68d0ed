"""The training function, repaired: the sampler's epoch, the model's mode, DDP's forward."""

import torch
from torch import nn
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, DistributedSampler


def train(
    model: nn.Module, training_set: Dataset, test_set: Dataset, epochs: int, batch: int, rate: float
) -> list[float]:
    """Train `model` over all ranks with SGD; return the accuracy after each epoch."""
    replica = DistributedDataParallel(model)
    sampler = DistributedSampler(training_set)
    loader = DataLoader(training_set, batch, sampler=sampler)
    optimizer = torch.optim.SGD(model.parameters(), lr=rate)
    accuracies = []
    for epoch in range(epochs):
        sampler.set_epoch(epoch)  # each epoch an order of its own
        replica.train()  # the evaluation before has left it in evaluation mode
        for inputs, classes in loader:
            loss = cross_entropy(replica(inputs), classes)  # through DDP: backward averages
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        replica.eval()
        with torch.no_grad():  # every rank evaluates all of the test set: slow, but right
            batches = [(model(inputs), classes) for inputs, classes in DataLoader(test_set, 256)]
        right = sum((logits.argmax(dim=1) == classes).sum() for logits, classes in batches)
        accuracies.append(int(right) / len(test_set))
    return accuracies
