"""What is searched, in memory: snapshots of the stores, kept up with the log."""
