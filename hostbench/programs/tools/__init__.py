"""What the peers of several subsystems share: tools that stand beside more than one of them, the
pages they measure in, and finding figures in what they print."""
