"""The stores compared with the log."""
