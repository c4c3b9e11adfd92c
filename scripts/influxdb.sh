#!/usr/bin/env bash
# influxdb.sh: builds the InfluxDB that compose.yaml names from its Go module, for tests, as
# build/influxdb/influxd. Takes ten minutes of two CPUs, once a version: the program stays in the
# user's cache, where the next checkout finds it. Needs Go 1.25, Rust and pkg-config. Exit 3: it
# cannot be built here; tests then take the distribution's 1.x.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/step.sh

version=$(sed -nE 's/.*influxdb:[^0-9]*([0-9]+\.[0-9]+\.[0-9]+)-.*/\1/p' compose.yaml)
module=github.com/influxdata/influxdb/v2
cache=${XDG_CACHE_HOME:-$HOME/.cache}/hostbench
program=$cache/influxd-$version-$(uname -m)
link=build/influxdb/influxd

# In a shell of its own, and each step by hand: `step` runs it where a failure does not end a script.
build() (
    work=$(mktemp --directory) || exit
    trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
    # Outside a module of its own, where go.mod would say otherwise.
    cd "$work" || exit
    found=$(go mod download -json "$module@v$version" | sed -n 's/^\t"Dir": "\(.*\)",/\1/p')
    cp -r "$found" source && chmod -R u+w source && cd source || exit
    # Flux asks for one version of Rust by name, which rustup may not have; newer ones serve.
    if command -v rustup >/dev/null; then
        RUSTUP_TOOLCHAIN=$(rustup default | cut -d ' ' -f 1)
        export RUSTUP_TOOLCHAIN
    fi
    # It compiles the part of Flux that is written in Rust when Go asks where that library is.
    wrapper=$(go list -m -f '{{.Version}}' github.com/influxdata/pkg-config) || exit
    GOBIN=$work go install "github.com/influxdata/pkg-config@$wrapper" || exit
    PKG_CONFIG=$work/pkg-config go build -tags sqlite_foreign_keys,sqlite_json \
        -ldflags "-s -w -X main.version=v$version" -o "$program.new" ./cmd/influxd || exit
    mv "$program.new" "$program"
)

if [[ ! -x $program ]]; then
    for tool in go cargo pkg-config; do
        command -v "$tool" >/dev/null || {
            echo "hostbench: $tool is missing, so InfluxDB $version is not built and tests take the distribution's 1.x" >&2
            exit 3
        }
    done
    mkdir -p "$cache" build
    exec 9>"$cache/influxdb.lock"
    flock 9
    [[ -x $program ]] || step "InfluxDB $version into $cache" build
fi
mkdir -p build/influxdb
ln -sfn "$program" "$link"
