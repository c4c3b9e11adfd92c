"""What all other packages are built on: errors, units, files, settings."""
