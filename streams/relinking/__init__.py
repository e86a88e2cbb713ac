"""Stored documents linked again by the rules of now, without embedding anything."""
