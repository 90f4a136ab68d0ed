"""Starts a script on several ranks, waits for its end, and holds what it left behind."""
