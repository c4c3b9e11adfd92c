"""hostbench measures what a host can really do and says how far each figure can be trusted."""

__version__ = "1.0.0"
