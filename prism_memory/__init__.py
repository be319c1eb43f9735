"""Prism Memory: durable memory for AI assistants, as a Django app."""
