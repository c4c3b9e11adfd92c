"""The toy subsystem, as a package of its own."""
