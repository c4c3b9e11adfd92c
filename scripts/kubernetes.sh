#!/usr/bin/env bash
# kubernetes.sh: builds Kubernetes, kwok (simulated nodes), Helm and kubeconform from their Go modules,
# for tests, and links them into build/kubernetes. Takes ten minutes of two CPUs, once a version: the
# programs stay in the user's cache, where the next checkout finds them. Needs Go 1.26. Exit 3: they
# cannot be built here; tests of clusters are then skipped.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/step.sh

kubernetes=1.37.2
kwok=0.8.0
helm=4.3.1
kubeconform=0.8.0

cache=${XDG_CACHE_HOME:-$HOME/.cache}/hostbench
links=build/kubernetes

# Each step of these by hand: `step` runs them where a failure does not end a script.

source_of() { # MODULE VERSION
    go mod download -json "$1@v$2" | sed -n 's/^\t"Dir": "\(.*\)",/\1/p'
}

# Other modules cannot require Kubernetes as it is: its go.mod replaces the modules of its folder
# staging/ by that folder. Their published versions have the same sources.
build_kubernetes() { # DIRECTORY
    local source module edits=() minor=${kubernetes#1.} version=k8s.io/component-base/version
    go mod init hostbench.dev/kubernetes || return
    source=$(source_of k8s.io/kubernetes "$kubernetes") || return
    # shellcheck disable=SC2013 # names of modules have no spaces
    for module in $(sed -nE 's|^\t(k8s.io/[^ ]+) => ./staging/.*|\1|p' "$source/go.mod"); do
        edits+=("-replace=$module=$module@v0.$minor")
    done
    go mod edit "-require=k8s.io/kubernetes@v$kubernetes" "${edits[@]}" || return
    go build -trimpath -ldflags "-s -w -X $version.gitVersion=v$kubernetes \
        -X $version.gitMajor=1 -X $version.gitMinor=${minor%.*}" -o "$1/" \
        k8s.io/kubernetes/cmd/{kube-apiserver,kube-controller-manager,kube-scheduler,kubectl,kubelet} ||
        return
    # For kubeconform, whose schemas are made from it.
    cp "$source/api/openapi-spec/swagger.json" "$1/openapi.json"
}

build_module() { # DIRECTORY PACKAGE VERSION
    go mod init hostbench.dev/tools || return
    GOBIN=$1 go install -trimpath -ldflags "-s -w" "$2@v$3"
}

build_kwok() { # DIRECTORY
    build_module "$1" sigs.k8s.io/kwok/cmd/kwok "$kwok" || return
    # kwok does nothing without stages: what becomes of a node or a pod, and when.
    cp -r "$(source_of sigs.k8s.io/kwok "$kwok")/kustomize/stage" "$1/stages" &&
        chmod -R u+w "$1/stages"
}

build_helm() { # DIRECTORY
    build_module "$1" helm.sh/helm/v4/cmd/helm "$helm"
}

build_kubeconform() { # DIRECTORY
    build_module "$1" github.com/yannh/kubeconform/cmd/kubeconform "$kubeconform"
}

# In a shell of its own, whose directory goes whatever happens.
build() ( # NAME DIRECTORY
    work=$(mktemp --directory) || exit
    trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
    cd "$work" && mkdir programs || exit
    export CGO_ENABLED=0 GOFLAGS=-mod=mod
    "build_$1" "$work/programs" || exit
    rm -rf "$2.new" && mv programs "$2.new" && mv "$2.new" "$2"
)

mkdir -p "$cache" "$links"
exec 9>"$cache/kubernetes.lock"
flock 9
for name in kubernetes kwok helm kubeconform; do
    directory=$cache/$name-${!name}-$(uname -m)
    if [[ ! -d $directory ]]; then
        command -v go >/dev/null || {
            echo "hostbench: go is missing, so $name ${!name} is not built and tests of clusters are skipped" >&2
            exit 3
        }
        step "$name ${!name} into $cache" build "$name" "$directory"
    fi
    for program in "$directory"/*; do
        ln -sfn "$program" "$links/"
    done
done
