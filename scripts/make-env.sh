#!/usr/bin/env bash
# make-env.sh [DIRECTORY]: makes .env and secrets/ of the stack there, by default in the
# repository's root: random keys and passwords, a CA and a server's certificate. What exists stays
# as it is; what is deleted is made anew, and so are certificates made here that no longer fit: to
# their key, their CA or the names in .env, or by their age. Exit 3: one that was given does not fit.
# GPU=nvidia, GPU=amd or GPU=none in the environment: which GPUs .env gives the gpu service; without
# it that stays, too. Exit 2: it is something else.
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

# Of users beside the one of api_key: make key adds them.
no_keys() {
    echo "# name role SHA-256 of the key; make key NAME=ann ROLE=viewer adds one, ROLE=none takes it away"
}

# Each host's key; this one's is service_key. A host that was given another name takes its key along.
host_keys() {
    local name key
    name=$(setting HOSTBENCH_HOST) key=$(<secrets/service_key)
    echo "# host key; make key NAME=bench-2 ROLE=host makes another, make farhost that of a new host"
    [[ ! -e secrets/host_keys ]] ||
        awk -v name="$name" -v key="$key" '!/^#/ && $1 != name && $2 != key' secrets/host_keys
    echo "$name $key"
}

# In place: what a container has of a file is this very one.
rewrite() { # FILE TEXT
    chmod u+w "secrets/$1"
    echo "$2" >"secrets/$1"
    chmod 444 "secrets/$1"
    made+=("secrets/$1")
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

# ---- GPUs ----

# What stands in .env, whatever the environment says.
written() { # NAME
    sed -n "s/^$1=//p" .env | tail -n 1
}

# set_line NAME VALUE: the line of .env says so from now on.
set_line() {
    [[ $(written "$1") != "$2" ]] || return 0
    if grep -q "^#\?$1=" .env; then
        sed -i "s|^#\?$1=.*|$1=$2|" .env
    else
        echo "$1=$2" >>.env
    fi
    made+=(".env: $1=$2")
}

# The groups that own AMD's devices, as numbers: a container knows only the names of its image.
set_groups() {
    local name number
    for name in video render; do
        number=$(getent group "$name" | cut -d: -f3) || {
            echo "hostbench: there is no group $name here, which owns AMD's devices; install the driver amdgpu" >&2
            exit 3
        }
        set_line "HOSTBENCH_${name^^}_GROUP" "$number"
    done
}

# Which files Compose reads for the GPUs that are wanted. A list of somebody else's making stays.
set_gpu() { # nvidia|amd|none
    local files
    files=$(written COMPOSE_FILE)
    case $files in
        "" | compose.yaml:compose.gpu.yaml | compose.yaml:compose.amd.yaml) ;;
        *)
            echo "hostbench: COMPOSE_FILE in .env is $files; change it by hand, or remove that line" >&2
            exit 3
            ;;
    esac
    case $1 in
        nvidia) set_line COMPOSE_FILE compose.yaml:compose.gpu.yaml ;;
        amd)
            set_groups
            set_line COMPOSE_FILE compose.yaml:compose.amd.yaml
            ;;
        none)
            [[ ! $files ]] || made+=(".env: no COMPOSE_FILE")
            sed -i "s|^COMPOSE_FILE=|#&|" .env
            ;;
    esac
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

case ${GPU:=} in
    "" | nvidia | amd | none) ;;
    *)
        echo "hostbench: GPU=$GPU is none of those known; give GPU=nvidia, GPU=amd or GPU=none" >&2
        exit 2
        ;;
esac
command -v openssl >/dev/null || {
    echo "hostbench: openssl is missing; install it: apt-get install openssl" >&2
    exit 3
}
if [[ ! -e .env ]]; then
    (umask 022 && sed "s/^HOSTBENCH_HOST=$/&$host/" "$source/.env.example" >.env)
    made+=(.env)
fi
# An earlier version of this script wrote these; the operator did not choose them. Security fixes come with
# the versions that compose.yaml names now.
for old in REDIS_VERSION=8.2.4-alpine INFLUXDB_VERSION=2.7.12-alpine GRAFANA_VERSION=12.4.10; do
    if grep -qx "HOSTBENCH_$old" .env; then
        sed -i "s|^HOSTBENCH_$old$|HOSTBENCH_${old%%=*}=|" .env
        made+=(".env: HOSTBENCH_${old%%=*} as compose.yaml has it")
    fi
done
[[ ! $GPU ]] || set_gpu "$GPU"
umask 077
mkdir -p secrets
chmod 700 secrets
for name in "${random[@]}"; do
    make "$name" openssl rand -hex 32
done
make keys no_keys
make host_keys host_keys
[[ $(<secrets/host_keys) == "$(host_keys)" ]] || rewrite host_keys "$(host_keys)"
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

# Where hostbench finds it, too: hostbench/client/checkout.py.
bind=$(setting HOSTBENCH_BIND)
bind=${bind//[\[\]]/}
case $bind in
    "" | 0.0.0.0 | :: | \*) bind=127.0.0.1 ;;
    *:*) bind="[$bind]" ;;
esac
port=$(setting HOSTBENCH_PORT)
tls=$(setting HOSTBENCH_TLS)
program=.venv/bin/hostbench
[[ -x $source/$program ]] || program="make venv; $program"
cat <<END
Next: make up (or docker compose up -d --wait)
Then: http${tls:+s}://$bind:${port:-8000}/ui/ in a browser; $program console --open logs it in
END
