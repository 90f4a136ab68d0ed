"""The backward pass."""


def my_grad(gradient_tape, L, desired_results, one):
    """dL/dx for each x of `desired_results`, None where L does not depend on x."""
    dL_d = {L.name: one}
    for entry in reversed(list(gradient_tape)):  # a copy: propagate adds entries
        dL_doutputs = [dL_d.get(name) for name in entry.outputs]
        if all(each is None for each in dL_doutputs):
            continue
        for name, dL_dinput in zip(entry.inputs, entry.propagate(dL_doutputs), strict=True):
            dL_d[name] = dL_d[name] + dL_dinput if name in dL_d else dL_dinput
    return [dL_d.get(x.name) for x in desired_results]
