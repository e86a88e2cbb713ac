"""Programs that make the weights that are shipped. They need torch, and no part of Thalweg needs them to run."""
