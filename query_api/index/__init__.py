"""The index that searches read: consistent snapshots of text and graph that follow the stores and the log."""
