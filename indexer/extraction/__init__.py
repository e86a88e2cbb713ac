"""Extraction of names, statements and links by rules, and of typed mentions from the encoder's own token states: no
language model.

Everything here is a pure function of one document, takes time linear in its length, and yields bounded results.
"""
