"""What the peers of several subsystems share: tools used by more than one of them, the pages they
measure in, and finding figures in their output."""
