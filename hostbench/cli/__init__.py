"""The command line: options, screens, progress."""
