"""The Python names of mem-bench's parameters, their words and its kernels."""

KERNELS = ("read", "write", "copy", "scale", "add", "triad")
BLOCK_KERNELS = ("read_write", "memset_write")
# They measure in a way that is known to mislead.
NAIVE = ("naive_copy", "naive_set")
THREADS, PAGES, STORE, PATTERN, OPERATION = "threads", "pages", "store", "pattern", "operation"
SIZE, SHARE, BLOCK = "size_bytes", "size_share", "block_bytes"
LOAD, INTENSITY = "load", "intensity"
CHAINS, STRIDE = "chains", "stride_bytes"
# The mode of pages that every system has.
SMALL_PAGES = "4k"
# The pattern of random blocks; all other cases are in order or without blocks.
RANDOM = "random"
# Of pointer_chase: each cache line of the working set.
LINE_BYTES = 64
# The block that most people mean by an access.
WORD_BYTES = 8
