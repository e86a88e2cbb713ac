"""Texts to vectors: the encoders, and the files of their models."""
