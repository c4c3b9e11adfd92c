#!/usr/bin/env bash
# promtool.sh: gets Prometheus' promtool for tests, as build/promtool, out of Debian's package
# prometheus. The package is not installed: it would start a server. Prints nothing when it is there.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/step.sh

program=build/promtool

unpack() {
    local new
    new=$(mktemp --directory build/promtool.XXXXXX) || return
    # `step` runs this where a failure does not end the script.
    (cd "$new" && apt-get download prometheus) &&
        dpkg-deb --extract "$new"/*.deb "$new" && mv "$new/usr/bin/promtool" $program
    local failed=$?
    rm -r "$new"
    return $failed
}

[[ -x $program ]] || step "promtool into $program" unpack
