"""Untrusted bytes are read in a child process with limits."""
