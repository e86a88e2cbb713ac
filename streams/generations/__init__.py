"""The next generation of the stores, built beside the live one, and what is ordered of it."""
