/* The instruction set that a parameter chooses. */
#ifndef MEM_BENCH_ISA_H
#define MEM_BENCH_ISA_H

#include "workload.h"

extern const char *const isas[];
#define PARAM_ISA PARAM_ISA_BEST("the widest that this CPU supports.")
#define PARAM_ISA_BEST(text)                                                                       \
    {.name = "isa",                                                                                \
     .type = PARAM_CHOICE,                                                                         \
     .initial = "best",                                                                            \
     .choices = isas,                                                                              \
     .roles = ROLE_TAG,                                                                            \
     .title = "instruction set",                                                                   \
     .resolved = "best",                                                                           \
     .resolved_once = true,                                                                        \
     .help = "Instruction set and vector width; best: " text}

/* For resolve(), unsupported() and unconfirmed() of workloads with this parameter. */
void isa_resolve(struct run *run);
const char *isa_unsupported(const struct run *run);
const char *isa_unconfirmed(const struct run *run);

#endif
