"""Checksums of files and rows, and the damage that they reveal."""
