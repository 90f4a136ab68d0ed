"""The framework of exercises: what `check` does with the files of `lessons/`."""
