"""The Model Context Protocol: tools for assistants, over the functions that the HTTP routes call."""
