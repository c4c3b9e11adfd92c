/* What a trial with verify has written is read back and compared, and nothing older may stand in its
 * place: a disk that loses a write leaves a block that is right in itself. */
#ifndef DISK_BENCH_READBACK_H
#define DISK_BENCH_READBACK_H

struct disk_job;
struct thread;

/* For open(): the memory of what was written where. 0 or an exit_code. */
int readback_open(struct disk_job *job);
void readback_close(struct disk_job *job);
/* For verify(), after the evidence was taken: reads what was written, for as long as the timed region
 * took at most, in an order that spreads what is left out. 0 or an exit_code. */
int readback_verify(struct thread *thread);

#endif
