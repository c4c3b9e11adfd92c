/* What the stand-ins for libcuda.so.1 and libnvidia-ml.so.1 share: the cards that there are, the
 * calls that fail, and a report of what was called and what was left. No GPU is needed to test the
 * host's side with them. The environment says what they do:
 *
 * STUB_FAIL      CALL:NTH:CODE, several with commas: that call of this name gives the code. NTH+: it
 *                and all later ones. A CUDA code that leaves a context unusable is given by all
 *                later calls, as by the driver.
 * STUB_REPORT    a file that gets a line for each name called, with how often, for each kind of thing
 *                that was not released, for each kernel with the most shared bytes of a group, and
 *                with the most bytes of memory requested at once
 * STUB_CARDS     how many there are (1); CUDA_VISIBLE_DEVICES hides and reorders them for CUDA
 * STUB_CC        their compute capability (9.0)
 * STUB_CUDA      the driver's version, as cuDriverGetVersion tells it (12040)
 * STUB_MEMORY    bytes of each card's memory (256 MiB)
 * STUB_TAKEN     … and others have so many of them
 * STUB_L2        … and of its L2 cache (1 MiB)
 * STUB_MIG       1: CUDA shows a part of the card
 * STUB_SM        the number of the multiprocessor that does all the work (0)
 * STUB_GRAIN     the steps of its clock of nanoseconds
 * STUB_FAST      its events tell one part in so many of the time that has passed (1)
 * STUB_NO_PEERS  1: cards do not reach one another's memory
 * STUB_DEVICE_FAIL  NTH:CODE: that piece of work fails while the device does it
 * STUB_HANG      the device never finishes its piece of work of this number
 * STUB_WRONG     KERNEL:ARGUMENT:NTH: from the NTH launch of this kernel on, one bit of what the
 *                argument points to is another afterwards; memcpy:BYTES:NTH: from the NTH copy of so
 *                many bytes on, one bit of what it writes
 * STUB_LAZY      KERNEL:NTH: from the NTH on, launches of this kernel do nothing; memcpy:BYTES:NTH:
 *                copies of so many bytes likewise
 * STUB_REFUSE    cubin, or ptx: the driver does not take images of this kind
 * STUB_XID       NTH:NUMBER: the NTH time that events are requested, there is this Xid
 * STUB_ECC       so many uncorrected errors more each time that they are read
 * STUB_REASONS   NVML's throttle reasons, a number
 * STUB_SILENT    1: NVML has no sensors (not supported) */
#ifndef GPU_STUB_H
#define GPU_STUB_H

#include <stdbool.h>

/* At the beginning of every entry point: counts the call; 0, or the code that it has to give. */
int stub_call(const char *name);
long stub_number(const char *variable, long otherwise);
/* The NTH of NAME:NTH or NAME:ARGUMENT:NTH in the variable, if it is of this name: and the argument. */
bool stub_named(const char *variable, const char *name, long *argument, long *nth);
/* Something is made (+1) or released (-1). */
void stub_keep(const char *kind, int change);
/* The largest of these is reported. */
void stub_most(const char *name, long bytes);
/* The place on the bus of a card, by the card's own number. */
void stub_pci(int card, char *text, int size);

#endif
