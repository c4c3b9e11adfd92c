"""Journals, documents, their index and their CSV."""
