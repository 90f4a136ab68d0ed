"""Wrong answers to 09.3 and 09.4, and right ones of another kind."""

REDUCE = "dist.all_reduce(norm, group=group)"
TOO_LARGE = "if norm.sqrt_() > max_norm:"
FACTOR = "max_norm / norm"
PUT_OFF = "ctx.put_off(weights)"
INPUTS = "x.reshape(-1, x.shape[-1])"
PRODUCT = f"rows.T @ {INPUTS}"
LATER = "def weights() -> None:"
ADD_BIAS = "add_gradient(bias, rows.sum(0))"

MUTANTS = {
    "09.3": [
        ("each stage alone", REDUCE, "pass", "norm of this rank alone"),
        (
            "norms added",
            REDUCE,
            f"norm.sqrt_()\n{REDUCE}",
            TOO_LARGE,
            "if norm > max_norm:",
            "You can't add norms",
        ),
        (
            "the mean over ranks",
            REDUCE,
            f"{REDUCE}\nnorm /= dist.get_world_size(group)",
            "Is that a mean over the ranks?",
        ),
        ("the group forgotten", REDUCE, "dist.all_reduce(norm)", "a pair"),
        ("always scaled", TOO_LARGE, "if norm.sqrt_() >= 0:", "nothing to clip"),
        ("never scaled", FACTOR, "1", "By which factor?"),
        (
            "by its own norm",
            REDUCE,
            f"own = norm.sqrt()\n{REDUCE}",
            TOO_LARGE,
            "if norm.sqrt_() >= 0:",
            FACTOR,
            "min(1, max_norm / own)",
            "this rank's own norm",
        ),
        (
            "squares in the gradients' dtype",
            "each.double()",
            "each",
            "In which dtype?",
        ),
        (
            "all gradients sent",
            REDUCE,
            "everyone = [None] * dist.get_world_size(group)\n"
            "dist.all_gather_object(everyone, gradients, group)\n"
            "norm.zero_()\n"
            "norm += sum(each.double().square().sum() for part in everyone for each in part)",
            "Only one number.",
        ),
        (
            "the norm after",
            "return norm",
            "return norm.clamp(max=max_norm)",
            "the norm before clipping",
        ),
        (
            "new gradients",
            "gradients = [",
            "parameters = list(parameters)\ngradients = [",
            "for each in gradients:\n            each.mul_(max_norm / norm)",
            "for each in parameters:\n"
            "    if each.grad is not None:\n"
            "        each.grad = each.grad * (max_norm / norm)",
            "Scale it in place",
        ),
        (
            "clips if its own norm is too large",
            REDUCE,
            f"own = norm.sqrt()\n{REDUCE}",
            TOO_LARGE,
            "norm.sqrt_()\nif own > max_norm:",
            "this rank's own norm",
        ),
    ],
    "09.4": [
        (
            "nothing is recorded, but x keeps its graph",
            "x = x.detach()",
            "pass",
            "def weights() -> None:",
            "@torch.no_grad()\ndef weights() -> None:",
            "still alive after every W",
        ),
        ("nothing put off", PUT_OFF, "weights()", "Only the gradient of x is due in B"),
        (
            "only the addition put off",
            PRODUCT,
            "product",
            LATER,
            f"product = gradient.reshape(-1, len(weight)).T @ {INPUTS}\n{LATER}",
            "matrix products",
        ),
        (
            "written over",
            f"add_gradient(weight, {PRODUCT})",
            f"weight.grad = {PRODUCT}",
            "was given a gradient",
        ),
        ("transposed", "gradient @ weight", "gradient @ weight.T", "raised RuntimeError"),
        ("no bias", ADD_BIAS, "pass", "bias.grad is wrong after W"),
        (
            "two dimensions",
            "gradient.reshape(-1, gradient.shape[-1])",
            "gradient",
            INPUTS,
            "x",
            "raised RuntimeError",
        ),
        (
            "frozen ones too",
            "if parameter.requires_grad:",
            "if True:",
            "frozen weight was given a gradient",
        ),
        (
            "what was there is lost",
            ADD_BIAS,
            "bias.grad = rows.sum(0) if bias.requires_grad else None",
            "lost what was in it",
        ),
        ("twice", PUT_OFF, f"{PUT_OFF}\n{PUT_OFF}", "called 2 times"),
        ("a gradient with a graph", "x = x.detach()", "pass", "has a graph of its own"),
        (
            "state on the class",
            PUT_OFF,
            f"SplitLinear.x = x\n{PUT_OFF}",
            LATER,
            f"{LATER}\n    x = SplitLinear.x",
            "Each call needs its own x",
        ),
    ],
}

RIGHT = {
    "09.3": [
        (
            "with an epsilon, in float32",
            "torch.float64",
            "torch.float32",
            "each.double()",
            "each.float()",
            FACTOR,
            "max_norm / (norm + 1e-6)",
        ),
        (
            "two loops over the parameters",
            "for each in gradients:",
            "for each in [each.grad for each in parameters if each.grad is not None]:",
        ),
    ],
    "09.4": [
        (
            "by einsum and two lists",
            PRODUCT,
            f'torch.einsum("rk,rn->kn", rows, {INPUTS})',
        ),
    ],
}
