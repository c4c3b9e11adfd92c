"""The Python names of disk-bench's parameters."""

BLOCK, DEPTH, FILE, TOTAL = "block_bytes", "queue_depth", "file_bytes", "total_bytes"
MODE, ENGINE, RATE, SHARE = "cache_mode", "engine", "rate", "read_share"
