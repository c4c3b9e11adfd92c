#!/usr/bin/env bash
# prometheus.sh: gets Prometheus' promtool and its node_exporter for tests, into build/prometheus,
# out of Debian's packages. These are not installed: they would start servers. Prints nothing when
# both are there.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/step.sh

root=build/prometheus

unpack() {
    local new failed archive
    new=$(mktemp --directory "$root.XXXXXX") || return
    # `step` runs this where a failure does not end the script.
    (
        cd "$new" && apt-get download prometheus prometheus-node-exporter || exit
        for archive in *.deb; do
            dpkg-deb --extract "$archive" . || exit
        done
    ) && mkdir -p "$root" &&
        mv "$new/usr/bin/promtool" "$new/usr/bin/prometheus-node-exporter" "$root"
    failed=$?
    rm -r "$new"
    return $failed
}

[[ -x $root/promtool && -x $root/prometheus-node-exporter ]] ||
    step "promtool and node_exporter into $root" unpack
