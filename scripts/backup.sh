#!/usr/bin/env bash
# Saves what a stack has measured, with its settings and keys, in one file, and puts it back into
# an empty stack. Exit 3: something is missing.
# Usage: scripts/backup.sh save FILE.tar | scripts/backup.sh restore FILE.tar
set -euo pipefail
cd "$(dirname "$0")/.."
umask 077 # it holds keys

results=/var/lib/hostbench/results
settings=${COMPOSE_ENV_FILES:-.env}
keys=${HOSTBENCH_SECRETS:-secrets}

give_up() {
    echo "hostbench: $1" >&2
    exit 3
}

# In a container of its own, so that it works whether or not the stack runs.
in_volume() {
    docker compose run --rm --no-deps --no-TTY --entrypoint "$1" orchestrator "${@:2}"
}

save() {
    [[ -e $settings && -d $keys ]] || give_up "$settings or $keys/ is missing; run: make env"
    [[ ! -e $1 ]] || give_up "$1 is there already; give another name"
    work=$(mktemp --directory)
    trap 'rm -rf "$work"' EXIT
    cp "$settings" "$work/.env"
    cp -r "$keys" "$work/secrets"
    # Of a job that runs it has the trials that have ended: its journal only grows.
    in_volume tar --create --file - --directory $results . >"$work/results.tar"
    tar --create --file "$1.part" --directory "$work" .env secrets results.tar
    mv "$1.part" "$1"
    echo "$1 holds the results, .env and secrets/: keep it as secret as these"
}

restore() {
    [[ -f $1 ]] || give_up "there is no file $1"
    tar --list --file "$1" results.tar >/dev/null 2>&1 ||
        give_up "$1 is not what make backup writes: it has no results.tar"
    if [[ -e $settings ]]; then
        echo "$settings and $keys/ stay as they are; those of the backup are in $1"
    else
        tar --extract --preserve-permissions --file "$1" .env secrets
    fi
    [[ ! $(in_volume find $results -mindepth 2 -name journal.ndjson -print -quit) ]] ||
        give_up "this stack has results, which a backup would mix with; empty it first with: docker compose down --volumes"
    tar --extract --to-stdout --file "$1" results.tar |
        in_volume tar --extract --no-overwrite-dir --file - --directory $results
    echo "the results of $1 are back"
}

case ${1-} in
save | restore)
    [[ ${2-} ]] || give_up "name the file, such as: make backup TO=hostbench.tar, make restore FROM=hostbench.tar"
    docker compose version >/dev/null 2>&1 || give_up "there is no Docker with Compose here"
    "$1" "$2"
    ;;
*) give_up "usage: scripts/backup.sh save FILE.tar | restore FILE.tar" ;;
esac
