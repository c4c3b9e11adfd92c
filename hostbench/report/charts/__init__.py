"""Drawings as SVG, by matplotlib: inline in the page, without ids, colours from its style sheet."""

import logging
import os

# Both before matplotlib is imported: it would talk of its font cache and of the user's own
# settings on standard error, and end the import for a back end that is not there.
logging.getLogger("matplotlib").setLevel(logging.ERROR)
os.environ["MPLBACKEND"] = "svg"
