"""The Python names of mem-bench's parameters, their words and its kernels."""

# What each of STREAM's kernels does for one element of 8 bytes.
ACCESSES = {
    "read": {"load": 1},
    "write": {"store": 1},
    "copy": {"load": 1, "store": 1},
    "scale": {"load": 1, "store": 1},
    "add": {"load": 2, "store": 1},
    "triad": {"load": 2, "store": 1},
}
KERNELS = tuple(ACCESSES)
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
