"""Drawings as SVG: inline in the page, without ids, colours from its style sheet."""
