/* The other end of a test: `net-bench far-end`, a process of its own that opens ports for one
 * near end, does what its test asks for, and is gone. */
#ifndef NET_BENCH_FAR_END_H
#define NET_BENCH_FAR_END_H

/* far-end --session-fd N [--lifeline-fd N]: N holds the grant (grant.h). Prints what it listens on
 * and how it ended, a JSON object a line:
 *
 *     {"event":"listening","address":"192.0.2.1","port":40001}
 *     {"event":"session_end","outcome":"done","reason":null,"strangers":0,"cpu_s":0.2}
 *
 * Outcomes: done; expired (no near end proved the token in time); refused (three wrong proofs, or a test
 * that it cannot or may not do); lost (the near end is gone or silent); capped (more than the
 * session allows); failed; ended (SIGTERM, SIGINT, SIGHUP, or the lifeline closed). argv begins
 * behind "far-end". 0 when done, an exit_code otherwise. */
int far_end_main(int argc, char **argv);

#endif
