"""Runs functions on untrusted bytes in child processes with limits."""
