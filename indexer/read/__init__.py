"""The stores as readers see them: snapshots, never written to."""
