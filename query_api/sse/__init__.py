"""Answers as Server-Sent Events, resumable."""
