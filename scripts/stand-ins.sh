#!/usr/bin/env bash
# stand-ins.sh DIRECTORY: makes the libraries that stand in, in the images, for large ones that a
# peer links but never calls when it measures: services/<subsystem>/stand-ins/<library>, a list of
# the functions that the peer would call. One that is called all the same says so and ends its
# process.
set -euo pipefail
cd "$(dirname "$0")/.."

mkdir -p "$1"
for list in services/*/stand-ins/*; do
    [[ -e $list ]] || continue # this subsystem has none
    library=${list##*/}
    {
        cat <<END
#include <stdio.h>
#include <stdlib.h>
static void refuse(void)
{
    fputs("hostbench: $library is left out of this image: use this part of the tool outside of it\n",
          stderr);
    _Exit(1);
}
END
        while read -r function; do
            echo "void $function(void) { refuse(); }"
        done <"$list"
    } | gcc -O2 -Wall -Wextra -Werror -shared -fPIC -s -Wl,-soname="$library" -x c -o "$1/$library" -
done
