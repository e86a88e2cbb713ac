"""Extraction of names, statements and links by rules alone: no language model, no model of named entities.

Everything here is a pure function of one document, takes time linear in its length, and yields bounded results.
"""
