"""Drawings as SVG, by matplotlib: inline in the page, without ids, colours from its style sheet."""
