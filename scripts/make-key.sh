#!/usr/bin/env bash
# make-key.sh NAME ROLE [DIRECTORY]: makes a key of the API for NAME and prints it, once: secrets/keys
# in DIRECTORY, by default the repository's root, has its SHA-256 alone. A name that is there gets
# another key; ROLE=none takes its key away. A running stack knows at once. Exit 2: a name or role is
# wrong; exit 3: something is missing.
set -euo pipefail
cd "${3:-$(dirname "$0")/..}"

give_up() { # CODE MESSAGE
    echo "hostbench: $2" >&2
    exit "$1"
}

name=${1-} role=${2-}
[[ $name =~ ^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$ ]] ||
    give_up 2 "NAME '$name' is not a name of a key; give up to 64 letters, digits, dots, dashes or underscores, such as: make key NAME=ann ROLE=viewer"
[[ $role =~ ^(viewer|operator|none)$ ]] ||
    give_up 2 "ROLE '$role' is not a role; give viewer, who may look, operator, who may submit and cancel too, or none, which takes the key away"
keys=secrets/keys
[[ -e $keys ]] || give_up 3 "$keys is missing; run: make env"

others=$(grep -v "^$name " "$keys" || true)
if [[ $role == none ]]; then
    [[ $others != "$(<"$keys")" ]] || give_up 3 "$name has no key in $keys; give one of the names at the beginning of its lines"
    line="" answer="$name has no key any more"
else
    key=$(openssl rand -hex 32)
    line="$name $role $(printf %s "$key" | sha256sum | cut -d ' ' -f 1)"
    answer=$key
fi
# In place: what a container has of it is this very file.
chmod u+w "$keys"
printf '%s\n' "$others" ${line:+"$line"} >"$keys"
echo "$answer"
