"""Checksums of rows and files, and what they say about the stores."""
