/* Whether results are compared: always, except in the build `unchecked` (Makefile), beside which
 * benchmarks/verification.py measures what the comparing costs. Its end events say `verified` false,
 * and hostbench takes no figure of it. */
#ifndef HOSTBENCH_CHECKED_H
#define HOSTBENCH_CHECKED_H

#ifdef HOSTBENCH_UNCHECKED
enum { RESULTS_ARE_CHECKED = 0 };
#else
enum { RESULTS_ARE_CHECKED = 1 };
#endif

#endif
