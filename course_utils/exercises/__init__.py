"""The exercises: a module a notebook, with `solutions/` and the `probes/` they are tested by."""
