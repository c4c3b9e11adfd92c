"""What the parameters of mem-bench, their words and its kernels are called in Python."""

KERNELS = ("read", "write", "copy", "scale", "add", "triad")
BLOCK_KERNELS = ("read_write", "memset_write")
# They measure the way that is known to mislead.
NAIVE = ("naive_copy", "naive_set")
THREADS, PAGES, STORE, PATTERN, OPERATION = "threads", "pages", "store", "pattern", "operation"
SIZE, SHARE, BLOCK = "size_bytes", "size_share", "block_bytes"
LOAD, INTENSITY = "load", "intensity"
# A pattern: without blocks, or in order, nothing else is meant.
RANDOM = "random"
# The block that most people mean by an access.
WORD_BYTES = 8
