#!/usr/bin/env bash
# Starts the stack of compose.yaml and prints its address. Exit 3: something is missing.
set -euo pipefail
cd "$(dirname "$0")/.."

give_up() {
    echo "hostbench: $1" >&2
    exit 3
}

# setting NAME: a variable of the orchestrator, as Compose makes it of .env and the environment.
setting() {
    local value
    value=$(sed -n "s/^ *$1: //p" <<<"$orchestrator" | head -n 1)
    value=${value#[\"\']}
    echo "${value%[\"\']}"
}

docker compose version >/dev/null 2>&1 ||
    give_up "there is no Docker with Compose here; install Docker Engine 25 or newer with its Compose plugin"
docker version >/dev/null 2>&1 ||
    give_up "no Docker Engine answers; start it, or be in the group docker"
[[ -e .env ]] || give_up ".env is missing; run: make env"
orchestrator=$(docker compose config orchestrator) ||
    give_up "Compose does not understand .env; correct it as the line above says"

key=$(sed -n 's/^ *file: \(.*\)\/api_key$/\1/p' <<<"$orchestrator")/authorization
key=${key#"$PWD/"}
[[ -e $key ]] || give_up "$key is missing; run: make env"
for file in keys host_keys; do
    [[ -e ${key%/*}/$file ]] || give_up "${key%/*}/$file is missing, which this version reads; run: make env"
done
bind=$(setting HOSTBENCH_BIND)
tls=$(setting HOSTBENCH_TLS_CERT_FILE)
[[ $tls || $bind =~ ^(127\..*|\[?::1]?|localhost)$ ]] ||
    give_up "HOSTBENCH_BIND is $bind, where keys would travel in clear; set HOSTBENCH_TLS=1 in .env, or HOSTBENCH_BIND=127.0.0.1"
# The services, which are not root, take the host's lock there.
lock=/run/lock/hostbench.lock
[[ -e $lock || ! -d /run/lock || $(find /run/lock -maxdepth 0 -perm -o=w) ]] ||
    give_up "only root may write to /run/lock here; make the lock file: sudo install --mode=666 /dev/null $lock"

docker compose up --detach --build --wait --wait-timeout 300 || {
    echo "hostbench: the stack did not come up; what its parts say: docker compose logs" >&2
    [[ ! ${COMPOSE_FILE:-$(sed -n "s/^COMPOSE_FILE=//p" .env)} =~ compose\.(gpu|amd)\.yaml ]] ||
        echo "hostbench: it asks for a GPU (COMPOSE_FILE); an engine that cannot give it any starts without: make env GPU=none up" >&2
    exit 1
}

scheme=http${tls:+s}
ca=${tls:+ --cacert ${key%/*}/ca.pem}
api=$scheme://$(docker compose port orchestrator 8000)
boards=$(docker compose port grafana 3000 2>/dev/null || true)
program=.venv/bin/hostbench
[[ -x $program ]] || program="make venv; $program"
cat <<END

Console $api/ui/ (logged in: $program console --open)
API     $api/docs
Boards  ${boards:+$scheme://$boards (user admin, password in ${key%/*}/grafana_admin_password)}

Measure this host and see the table:
  $program submit quick --wait
or over HTTP:
  curl$ca -H @$key --json '{"suite": "quick"}' $api/jobs
END
