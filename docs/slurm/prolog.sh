#!/bin/sh
# A Prolog for Slurm: no job starts on a node that is not qualified. slurm.conf: Prolog=.../prolog.sh
#
# qualify.sh wrote $QUALIFIED/NODE, with the kernel that the node was measured with. Slurm drains a
# node whose Prolog fails, and gives the job another one. It takes some milliseconds: nothing is
# measured here.
QUALIFIED=${HOSTBENCH_QUALIFIED:-/shared/hostbench/qualified}

# Campaigns measure nodes that are not qualified yet. Anybody can write a comment: where users must
# not pass, ask for the user of campaigns instead, [ "$SLURM_JOB_USER" = hostbench ].
case $SLURM_JOB_COMMENT in "hostbench campaign "*) exit 0 ;; esac

drain() {
    scontrol update "NodeName=$SLURMD_NODENAME" State=DRAIN Reason="hostbench: $1"
    exit 1
}
kernel=$(cat "$QUALIFIED/$SLURMD_NODENAME") 2>/dev/null || drain "not qualified"
[ "$kernel" = "$(uname -r)" ] || drain "qualified with kernel $kernel"
