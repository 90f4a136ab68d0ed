"""Faults in what a single process computes or keeps, and in its clock; each patches a function."""

import os
import time

import torch

RANK, WORLD = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
LAST = WORLD - 1


def wrong_gradients() -> None:
    """What autograd computes on the last rank is 1 % too large, and never a plain number."""
    grad, backward = torch.autograd.grad, torch.Tensor.backward

    def scaled_grad(*arguments, **named):
        found = grad(*arguments, **named)
        return tuple(g if g is None else g * 1.01 for g in found) if RANK == LAST else found

    def scaled_backward(self, gradient=None, *arguments, **named):
        if RANK == LAST:
            gradient = (torch.ones_like(self) if gradient is None else gradient) * 1.01
        return backward(self, gradient, *arguments, **named)

    torch.autograd.grad, torch.Tensor.backward = scaled_grad, scaled_backward


def wrong_rule() -> None:
    """Every rule of the tape of notebook 01 gives a gradient of the wrong sign."""
    import tape

    record = tape.record
    tape.record = lambda value, inputs, rule, op="": record(
        value, inputs, lambda *given: [-part for part in rule(*given)], op
    )


def joined_wrong() -> None:
    """Where tensors are joined, the last one is 1 % too large."""
    cat = torch.cat

    def scaled(tensors, *arguments, **named):
        *others, last = tensors
        return cat(
            [*others, last * 1.01 if last.is_floating_point() else last], *arguments, **named
        )

    torch.cat = scaled


def unmasked() -> None:
    """No mask hides anything."""
    torch.Tensor.masked_fill = lambda self, mask, value: self


def blind() -> None:
    """In every softmax, each row sees only its own place."""

    def own_place(self, *arguments, **named):
        return torch.eye(*self.shape[-2:], dtype=self.dtype, device=self.device).expand_as(self)

    torch.Tensor.softmax = own_place


def sample_twice() -> None:
    """A sampler gives each rank its first sample in place of its last one, too."""
    sampler = torch.utils.data.DistributedSampler
    plain = sampler.__iter__

    def with_the_first_again(self):
        first, *others, _ = plain(self)
        return iter([first, *others, first])

    sampler.__iter__ = with_the_first_again


def own_step() -> None:
    """The last rank's parameters move a little further with every step than those of the others."""
    for optimizer in (torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW):
        step = optimizer.step

        def moved(self, *arguments, _step=step, **named):
            found = _step(self, *arguments, **named)
            with torch.no_grad():
                for group in self.param_groups if RANK == LAST else ():
                    for parameter in group["params"]:
                        parameter.add_(1e-3)
            return found

        optimizer.step = moved


def not_trained() -> None:
    """No optimizer takes a step."""
    for optimizer in (torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW):
        optimizer.step = lambda self, closure=None: None


def never_freed() -> None:
    """No tensor's memory is given back before the process ends."""
    kept = []
    resize = torch.UntypedStorage.resize_

    def keep(self, size):
        if size == 0:
            kept.append(self)
            return self
        return resize(self, size)

    torch.UntypedStorage.resize_ = keep
    zeros_like, empty_like = torch.zeros_like, torch.empty_like

    def hold(make):
        def made(*arguments, **named):
            tensor = make(*arguments, **named)
            kept.append(tensor)
            return tensor

        return made

    torch.zeros_like, torch.empty_like = hold(zeros_like), hold(empty_like)


def never_forgets() -> None:
    """Autograd keeps all that it has saved for a backward pass, also when that is done."""
    kept, backward = [], torch.autograd.backward

    def keep(tensors, gradients=None, retain_graph=None, *arguments, **named):
        kept.append(tensors)
        return backward(tensors, gradients, True, *arguments, **named)

    torch.autograd.backward = keep


def not_restored() -> None:
    """A model keeps the weights it has where it should take saved ones."""
    torch.nn.Module.load_state_dict = lambda self, *arguments, **named: None


def not_sharded() -> None:
    """Every rank keeps the whole tensor where notebook 06 keeps a part."""
    import tp_communications

    tp_communications.own_part = lambda x, group, dim: x.detach().clone()


def renumbered() -> None:
    """In every schedule of notebook 09, micro-batches 0 and 1 change places."""
    from pipeline_schedules import SCHEDULES

    def changed(schedule):
        places = {0: 1, 1: 0}
        return lambda *given: [
            each._replace(microbatch=places.get(each.microbatch, each.microbatch))
            for each in schedule(*given)
        ]

    for name, schedule in SCHEDULES.items():
        SCHEDULES[name] = changed(schedule)


def oversleeps() -> None:
    """Who sleeps sleeps a fifth longer than asked."""
    sleep = time.sleep
    time.sleep = lambda seconds: sleep(1.2 * seconds)


def fast_clock() -> None:
    """The last rank's clock runs 1 % fast."""
    if RANK == LAST:
        monotonic = time.monotonic
        time.monotonic = lambda: 1.01 * monotonic()


PATCHES = {
    fault.__name__: fault
    for fault in (
        *(wrong_gradients, wrong_rule, joined_wrong, unmasked, blind, sample_twice, own_step),
        *(not_trained, never_freed, never_forgets, not_restored, not_sharded, renumbered),
        *(oversleeps, fast_clock),
    )
}
