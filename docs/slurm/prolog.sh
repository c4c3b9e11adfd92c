#!/bin/sh
# A Prolog for Slurm: no job starts on a node that is not qualified. slurm.conf: Prolog=.../prolog.sh
#
# qualify.sh wrote $QUALIFIED/NODE: the kernel and the firmware that the node was measured with, a
# line each. Slurm drains a node whose Prolog fails, and gives the job another one. It takes some
# milliseconds: nothing is measured here.
QUALIFIED=${HOSTBENCH_QUALIFIED:-/shared/hostbench/qualified}
DMI=${HOSTBENCH_DMI:-/sys/class/dmi/id}

# Campaigns measure nodes that are not qualified yet. Anybody can write a comment: where users must
# not pass, ask for the user of campaigns instead, [ "$SLURM_JOB_USER" = hostbench ].
case $SLURM_JOB_COMMENT in "hostbench campaign "*) exit 0 ;; esac

drain() {
    scontrol update "NodeName=$SLURMD_NODENAME" State=DRAIN Reason="hostbench: $1"
    exit 1
}
dmi() { sed 's/^ *//; s/ *$//' "$DMI/$1" 2>/dev/null; }

found=$(cat "$QUALIFIED/$SLURMD_NODENAME") 2>/dev/null || drain "not qualified"
kernel=$(printf '%s\n' "$found" | sed -n 1p)
[ "$kernel" = "$(uname -r)" ] || drain "qualified with kernel $kernel"

# As documents have it: SeaBIOS 1.16.3 of 04/01/2014. Without a second line it was not known.
vendor=$(dmi bios_vendor) version=$(dmi bios_version) date=$(dmi bios_date)
name=$vendor${vendor:+${version:+ }}$version
now=$name${name:+${date:+ of $date}}
firmware=$(printf '%s\n' "$found" | sed -n 2p)
[ -z "$firmware" ] || [ "$firmware" = "$now" ] || drain "qualified with firmware $firmware"
