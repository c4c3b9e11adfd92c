/* The workload table for people (--help) and for programs (--list). */
#ifndef HOSTBENCH_TABLE_H
#define HOSTBENCH_TABLE_H

#include "workload.h"

void table_print_json(const struct program *program);
void table_print_help(const struct program *program);
void table_print_workload_help(const struct program *program, const struct workload *workload);

#endif
