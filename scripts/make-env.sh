#!/usr/bin/env bash
# make-env.sh [DIRECTORY]: makes .env and secrets/ of the stack there, by default in the
# repository's root: random keys and passwords, a CA and a server's certificate. What exists stays
# as it is; what is deleted is made anew, and so are certificates made here that no longer fit: to
# their key, their CA or the names in .env, or by their age. Exit 3: one that was given does not fit.
set -euo pipefail
source=$(cd "$(dirname "$0")/.." && pwd)
. "$source/scripts/certificates.sh"
cd "${1:-$source}"

ca_name="hostbench CA"
ca_days=3650
random=(api_key service_key redis_password influxdb_admin_password influxdb_admin_token
    influxdb_password influxdb_read_password grafana_admin_password)
host=$(uname -n)
made=()

# make FILE COMMAND...: the command's output becomes the file, unless it is there.
make() {
    [[ -e secrets/$1 ]] || remake "$@"
}

# Containers of any user read it; other users of this host do not get into secrets/.
remake() { # FILE COMMAND...
    local file=secrets/$1
    shift
    "$@" >"$file.new"
    chmod 444 "$file.new"
    mv "$file.new" "$file"
    made+=("$file")
}

# What curl -H @FILE sends, so that the key stands in no command line.
authorization() {
    echo "Authorization: Bearer $(<secrets/api_key)"
}

new_ca() {
    certify secrets/ca.key "$ca_name" "$ca_days" \
        -addext "basicConstraints = critical, CA:true, pathlen:0" \
        -addext "keyUsage = critical, keyCertSign, cRLSign"
}

# For the names and addresses under which the API and Grafana are reached.
new_certificate() {
    # shellcheck disable=SC2046 # each a word
    certify_server secrets/server.key localhost orchestrator grafana "$host" \
        "$(hostname -f 2>/dev/null)" 127.0.0.1 ::1 $(hostname -I 2>/dev/null) \
        $(setting HOSTBENCH_CERTIFICATE_NAMES)
}

# ---- what is there: does it fit? ----

made_here() { # CERTIFICATE
    openssl x509 -in "secrets/$1.pem" -noout -issuer | grep -q "= *$ca_name"
}

is_of_its_key() { # CERTIFICATE
    [[ $(openssl x509 -in "secrets/$1.pem" -noout -pubkey) == $(openssl pkey -in "secrets/$1.key" -pubout) ]]
}

is_of_the_ca() {
    openssl verify -CAfile secrets/ca.pem -untrusted secrets/server.pem secrets/server.pem >/dev/null 2>&1
}

has_names() {
    local name
    for name in $(setting HOSTBENCH_CERTIFICATE_NAMES); do
        openssl x509 -in secrets/server.pem -noout -checkhost "$name" -checkip "$name" |
            grep -q "does match" || return
    done
}

lasts() { # CERTIFICATE
    openssl x509 -in "secrets/$1.pem" -noout -checkend 0 >/dev/null
}

# A CA or certificate of somebody else's making is never replaced.
refuse() { # CERTIFICATE REASON REMEDY
    echo "hostbench: secrets/$1.pem $2; $3, or delete it, for one of make env" >&2
    exit 3
}

ensure_ca() {
    make ca.key new_key
    make ca.pem new_ca
    made_here ca || return 0
    { is_of_its_key ca && lasts ca; } || remake ca.pem new_ca
}

ensure_certificate() {
    make server.key new_key
    make server.pem new_certificate
    if made_here server; then
        { is_of_its_key server && is_of_the_ca && has_names && lasts server; } ||
            remake server.pem new_certificate
        return
    fi
    is_of_its_key server || refuse server "is not the certificate of secrets/server.key" "give both"
    is_of_the_ca || refuse server "is not valid by the authorities in secrets/ca.pem" \
        "put there the certificate of its authority"
}

# ---- what to make ----

command -v openssl >/dev/null || {
    echo "hostbench: openssl is missing; install it: apt-get install openssl" >&2
    exit 3
}
if [[ ! -e .env ]]; then
    (umask 022 && sed "s/^HOSTBENCH_HOST=$/&$host/" "$source/.env.example" >.env)
    made+=(.env)
fi
umask 077
mkdir -p secrets
chmod 700 secrets
for name in "${random[@]}"; do
    make "$name" openssl rand -hex 32
done
[[ $(cat secrets/authorization 2>/dev/null) == "$(authorization)" ]] ||
    remake authorization authorization
ensure_ca
ensure_certificate
chmod 400 secrets/ca.key # no container's business
# Containers of other users read what is bound from here.
chmod -R a+rX "$source/compose" "$source/grafana"

if ((${#made[@]})); then
    echo "Made in $PWD:"
    printf '  %s\n' "${made[@]}"
else
    echo "All of .env and secrets/ was there; nothing was changed."
fi
echo "Next: make up"
