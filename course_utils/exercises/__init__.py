"""The exercises: a module per notebook, `solutions/`, and the `probes/` that run the answers."""
