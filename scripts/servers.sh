#!/usr/bin/env bash
# servers.sh: unpacks the distribution's redis-server and influxdb into build/servers, for tests.
# They are not installed: their packages would start services. Prints nothing when they are there.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/step.sh

servers=(redis-server influxdb)
root=build/servers

complete() { [[ -x $root/usr/bin/redis-server && -x $root/usr/bin/influxd ]]; }

# What the servers need beyond what is installed here, themselves included. An installed one is
# looked up too: only its files are copied then.
wanted() {
    LC_ALL=C apt-get --simulate --no-install-recommends install --reinstall "${servers[@]}" |
        awk '/^Inst/ { print $2 }'
}

unpack() {
    local packages new=$root.new
    rm -rf "$root" "$new"
    mkdir -p "$new/archives"
    mapfile -t packages < <(wanted)
    ((${#packages[@]})) || { echo "apt-get knows neither of ${servers[*]}"; return 1; }
    # `step` runs this where a failure does not end the script.
    (cd "$new/archives" && apt-get download "${packages[@]}") || return
    for archive in "$new"/archives/*.deb; do
        dpkg-deb --extract "$archive" "$new" || return
    done
    rm -r "$new/archives"
    mv "$new" "$root"
}

complete && exit
exec 9>build/servers.lock
flock 9
complete && exit
step "redis-server and influxdb into $root" unpack
complete || { echo "hostbench: $root lacks redis-server or influxd after unpacking" >&2; exit 1; }
