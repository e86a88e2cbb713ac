"""The stores held against the log."""
