"""The report of a job: its result document as a page, as Markdown or as CSV.

`page` turns a document into content (content.py); `html` and `markdown` turn content into text. A
subsystem adds its own section: see `hostbench.report.subsystems`.
"""
