"""Starts a script on several ranks, waits for its end, and keeps what it left behind."""
