"""The commands that run and load things."""
