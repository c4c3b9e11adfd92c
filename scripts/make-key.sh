#!/usr/bin/env bash
# make-key.sh NAME ROLE [DIRECTORY]: makes a key of the API for NAME and prints it, once: secrets/keys
# in DIRECTORY, by default the repository's root, has its SHA-256 alone. A name that is there gets
# another key; ROLE=none takes its key away. ROLE=host: a key for the services of the host NAME, which
# stands in secrets/host_keys, and for this host in secrets/service_key. NAME=api_key ROLE=operator:
# another secrets/api_key, which is not printed. A running stack knows at once. Exit 2: a name or role
# is wrong; exit 3: something is missing.
set -euo pipefail
source=$(cd "$(dirname "$0")/.." && pwd)
. "$source/scripts/certificates.sh"
cd "${3:-$source}"

give_up() { # CODE MESSAGE
    echo "hostbench: $2" >&2
    exit "$1"
}

name=${1-} role=${2-}
[[ $name =~ ^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$ ]] ||
    give_up 2 "NAME '$name' is not a name of a key; give up to 64 letters, digits, dots, dashes or underscores, such as: make key NAME=ann ROLE=viewer"
[[ $role =~ ^(viewer|operator|poster|host|none)$ ]] ||
    give_up 2 "ROLE '$role' is not a role; give viewer, who may look, operator, who may submit and cancel too, poster, who may post documents alone, host, for the services of the host NAME, or none, which takes the key away"
for file in keys host_keys; do
    [[ -e secrets/$file ]] || give_up 3 "secrets/$file is missing; run: make env"
done

# others FILE: its lines but those of NAME.
others() {
    awk -v name="$name" '$1 != name' "secrets/$1"
}

# In place: what a container has of a file is this very one.
rewrite() { # FILE LINE...
    local file=secrets/$1
    shift
    chmod u+w "$file"
    printf '%s\n' "$@" >"$file"
    chmod 444 "$file"
}

if [[ $name == api_key ]]; then
    [[ $role == operator ]] ||
        give_up 2 "ROLE '$role' is not for secrets/api_key, which the stack does not start without; make another in its place: make key NAME=api_key ROLE=operator"
    [[ -e secrets/api_key ]] || give_up 3 "secrets/api_key is missing; run: make env"
    key=$(openssl rand -hex 32)
    rewrite api_key "$key"
    rewrite authorization "Authorization: Bearer $key"
    echo "secrets/api_key and secrets/authorization have another key."
    exit
fi
if [[ $role == none ]]; then
    found=
    for file in keys host_keys; do
        [[ $(others $file) != "$(<"secrets/$file")" ]] || continue
        rewrite $file "$(others $file)"
        found=1
    done
    [[ $found ]] || give_up 3 "$name has no key in secrets/keys or secrets/host_keys; give one of the names at the beginning of their lines"
    echo "$name has no key any more"
    exit
fi
key=$(openssl rand -hex 32)
if [[ $role == host ]]; then
    rewrite host_keys "$(others host_keys)" "$name $key"
    [[ $name != "$(setting HOSTBENCH_HOST)" ]] || rewrite service_key "$key"
else
    rewrite keys "$(others keys)" "$name $role $(printf %s "$key" | sha256sum | cut -d ' ' -f 1)"
fi
echo "$key"
