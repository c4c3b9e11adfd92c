"""The course report: published tables, row by row, compared with this host."""
