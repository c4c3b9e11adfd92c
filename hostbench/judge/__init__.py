"""From trials to verdicts: statistics, limits, reasons."""
