"""The records that programs, services, files and the API exchange."""
