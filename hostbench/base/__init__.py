"""What every other package stands on: errors, units, files, settings."""
