#!/usr/bin/env bash
# make-far-host.sh NAME ADDRESS [DIRECTORY]: makes NAME.tar with what a second machine needs for
# compose.peer.yaml, beside the .env and secrets/ of the stack in DIRECTORY, by default the
# repository's root: .env, the key of the host NAME, the CA's certificate, and a key and a
# certificate for ADDRESS, by which the orchestrator reaches that machine. The host's key stands in
# secrets/host_keys from then on; one that it has already stays. Exit 2: a name or address is wrong;
# exit 3: something is missing here.
set -euo pipefail
source=$(cd "$(dirname "$0")/.." && pwd)
. "$source/scripts/certificates.sh"

give_up() { # CODE MESSAGE
    echo "hostbench: $2" >&2
    exit "$1"
}

name=${1-} address=${2-}
[[ $name =~ ^[A-Za-z0-9]([A-Za-z0-9._-]{0,62}[A-Za-z0-9])?$ ]] ||
    give_up 2 "NAME '$name' is not a name of a host; give one such as: make farhost NAME=bench-2 ADDRESS=192.0.2.8"
[[ $address =~ ^([0-9]+(\.[0-9]+){3}|[0-9a-fA-F:]+:[0-9a-fA-F:.]*)$ ]] ||
    give_up 2 "ADDRESS '$address' is not an IP address; give that of $name, such as: make farhost NAME=$name ADDRESS=192.0.2.8"
cd "${3:-$source}"

host_key() {
    awk -v name="$name" '$1 == name { print $2 }' secrets/host_keys
}

[[ -e .env && -e secrets/host_keys ]] || give_up 3 ".env or secrets/ is missing; run: make env"
[[ $name != "$(setting HOSTBENCH_HOST)" ]] ||
    give_up 2 "NAME '$name' is this machine's own; give the other one a name of its own, such as: make farhost NAME=bench-2 ADDRESS=$address"
[[ -e secrets/ca.key ]] ||
    give_up 3 "secrets/ca.key is missing: the CA is not of make env; have its authority make a certificate for $address, as docs/operations.md says"
[[ $(setting HOSTBENCH_TLS) ]] ||
    give_up 3 "HOSTBENCH_TLS is not set in .env, so no other machine reaches the orchestrator; set it and HOSTBENCH_BIND, then: make env up"

# Where the second machine reaches the orchestrator.
bind=$(setting HOSTBENCH_BIND)
bind=${bind:-127.0.0.1}
if [[ $bind =~ ^(0\.0\.0\.0|\[?::]?)$ ]]; then
    bind=$(ip route get "$address" 2>/dev/null | sed -n 's/.* src \([^ ]*\).*/\1/p' | head -n 1)
fi
[[ $bind && ! $bind =~ ^(127\..*|\[?::1]?|localhost)$ ]] ||
    give_up 3 "HOSTBENCH_BIND is '$(setting HOSTBENCH_BIND)', by which $address does not reach the orchestrator; set it to this machine's address in .env, then: make env up"
[[ $bind == *:* && $bind != \[* ]] && bind="[$bind]"
port=$(setting HOSTBENCH_PORT)

scratch=$(mktemp --directory)
trap 'rm -r -- "$scratch"' EXIT
umask 077
mkdir "$scratch/secrets"
new_key >"$scratch/secrets/server.key"
certify_server "$scratch/secrets/server.key" "$address" "$name" >"$scratch/secrets/server.pem"
cp secrets/ca.pem "$scratch/secrets"
[[ $(host_key) ]] || "$source/scripts/make-key.sh" "$name" host "$PWD" >/dev/null
host_key >"$scratch/secrets/service_key"
[[ $address == *:* ]] && address="[$address]"
cat >"$scratch/.env" <<END
# Settings of compose.peer.yaml, made by make farhost.
HOSTBENCH_HOST=$name
# The address of this machine at which the net service listens, with TLS.
HOSTBENCH_ADDRESS=$address
HOSTBENCH_ORCHESTRATOR_URL=https://$bind:${port:-8000}
# As in .env.example.
HOSTBENCH_NET_ADDRESS=
HOSTBENCH_NET_BANDWIDTH=
HOSTBENCH_CA_BUNDLE=
HOSTBENCH_TAG=latest
END
# Containers of any user read the files; other users of the host do not get into secrets/.
chmod 444 "$scratch"/secrets/*
chmod 644 "$scratch/.env"
tar --create --file "$name.tar" --directory "$scratch" --owner=0 --group=0 .env secrets
cat <<END
Made $PWD/$name.tar. It holds keys: copy it by a safe way, and delete it afterwards.
On $name, in a checkout of the same version:
  tar --extract --preserve-permissions --no-same-owner --file $name.tar
  docker compose --file compose.peer.yaml up --detach --build --wait
END
