"""Backups of a generation: held still, written to a folder or an archive, checked, restored."""
