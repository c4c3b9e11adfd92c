#!/usr/bin/env bash
# docker-engine.sh start|stop|env: a Docker Engine with Compose and Buildx, for `make e2e`.
#
#   start   uses the engine that is there; where there is none, unpacks the distribution's under
#           build/docker (nothing is installed), starts it and waits until it answers; makes the
#           image debian:trixie-slim where it cannot be pulled
#   env     prints what leads to the engine: eval "$(scripts/docker-engine.sh env)"; exit 1: there
#           is none
#   stop    ends the engine that `start` started; its images and build cache stay in build/docker
#
# Exit 3: there is no engine and none can be started here.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/step.sh
. scripts/apt.sh

base_image=debian:trixie-slim
base_release=trixie
compose_least=2.26 # what Debian 13 has
answer_s=60
pull_s=120

home=$PWD/build/docker
apt_home=$home/apt
root=$home/root
checkout=$(sha256sum <<<"$PWD" | cut -c1-8)
# Not under build/, since a Unix socket's path has 107 characters at most. As the processes, it is
# gone after a reboot.
run=/run/hostbench-docker-$checkout
bridge=hb-$checkout
tables=(iptables ip6tables)

give_up() { # REASON REMEDY
    echo "hostbench: $1; $2" >&2
    exit 3
}

# ---- is there one? ----

answers() {
    timeout 20 docker version >/dev/null 2>&1
}

has_plugins() {
    local version
    version=$(docker compose version --short 2>/dev/null) || return
    docker buildx version >/dev/null 2>&1 || return
    printf '%s\n' "$compose_least" "${version#v}" | sort --version-sort --check=quiet
}

usable() {
    answers && has_plugins
}

# What is missing, where none is usable.
lacking() {
    local version
    if ! answers; then
        echo "there is no Docker Engine that $(id -un) can use"
    elif ! docker buildx version >/dev/null 2>&1; then
        echo "the Docker Engine here has no Buildx"
    else
        version=$(docker compose version --short 2>/dev/null) || version=none
        echo "the Docker Engine here lacks Compose $compose_least or newer (it has $version)"
    fi
}

# What an earlier `start` wrote down.
own_environment() {
    # shellcheck source=/dev/null
    . "$home/environment"
}

own_is_usable() {
    [[ -e $home/environment ]] && (own_environment && usable)
}

# ---- packages, unpacked ----

# The packages and those of theirs that are missing on this machine.
download_missing() { # RELEASE DIRECTORY PACKAGE...
    local release=$1 directory=$2
    shift 2
    apt_get "$release" install --no-install-recommends --download-only \
        -o "Dir::Cache::archives=$directory" "$@"
}

unpack() { # DIRECTORY
    local package
    rm -rf "$root" "$root.new"
    for package in "$1"/*.deb; do
        dpkg-deb --extract "$package" "$root.new" || return
    done
    mv "$root.new" "$root"
}

# Fills build/docker/root. What surrounds the engine is always of this machine's own release, for
# it must fit the C library and the kernel that are here.
get_packages() { # PACKAGE... of the newer release
    local own=$VERSION_CODENAME engine=$base_release files=$home/apt/files
    local around=(runc iptables iproute2 mmdebstrap)
    [[ $ID == debian && ${VERSION_ID:-99} -lt 13 ]] || engine=$own
    rm -rf "$files"
    mkdir -p "$files/partial"
    step "package lists of $own" update_lists "$own"
    if [[ $engine == "$own" ]]; then
        around+=("$@")
    else
        step "package lists of $engine" update_lists "$engine"
        step "$* of $engine" download "$engine" "$files" "$@"
    fi
    step "${around[*]} of $own" download_missing "$own" "$files" "${around[@]}"
    step "unpacking into build/docker" unpack "$files"
    rm -rf "$files"
}

ensure_packages() {
    [[ -e $root ]] && return
    case $ID in
        debian) get_packages docker.io docker-cli docker-compose docker-buildx containerd tini ;;
        ubuntu) get_packages docker.io docker-compose-v2 docker-buildx containerd ;;
        *) give_up "there is no Docker Engine with Compose $compose_least or newer here" \
            "install one (only Debian's and Ubuntu's can be unpacked)" ;;
    esac
}

# ---- the engine ----

# For what comes from build/docker/root; what it lacks was on this machine already.
set_paths() {
    local libraries
    libraries=$(printf '%s:' "$root"/usr/lib/*-linux-gnu* "$root"/lib/*-linux-gnu*)
    export PATH=$home/bin:$root/usr/bin:$root/usr/sbin:$root/bin:$root/sbin:$PATH:/usr/sbin:/sbin
    export LD_LIBRARY_PATH=$libraries
    PERL5LIB=$(printf '%s:' "$root"/usr/share/perl/* "$root"/usr/lib/*/perl/* "$root/usr/share/perl5")
    export PERL5LIB # mmdebstrap's
    if [[ -e $root/usr/sbin/iptables-nft ]]; then
        export XTABLES_LIBDIR=${libraries%%:*}/xtables
        link_iptables
    fi
}

# As the package does when it is installed.
link_iptables() {
    local variant=nft command
    iptables-nft --table nat --list-rules >/dev/null 2>&1 || variant=legacy
    mkdir -p "$home/bin"
    for command in iptables ip6tables; do
        ln -sf "$root/usr/sbin/$command-$variant" "$home/bin/$command"
        ln -sf "$root/usr/sbin/$command-$variant-save" "$home/bin/$command-save"
        ln -sf "$root/usr/sbin/$command-$variant-restore" "$home/bin/$command-restore"
    done
}

write_environment() { # ADDRESS, empty for the engine that is there already
    local plugin
    plugin=$(find "$root" -path "*/cli-plugins/docker-compose")
    mkdir -p "$home/client" "$home/config"
    ln -sf "$root/usr/bin/docker" "$home/client/docker"
    echo "{\"cliPluginsExtraDirs\": [\"${plugin%/*}\"]}" >"$home/config/config.json"
    {
        echo "export PATH=$home/client:\$PATH"
        echo "export DOCKER_CONFIG=$home/config"
        [[ -z $1 ]] || echo "export DOCKER_HOST=$1"
    } >"$home/environment"
}

# The process of a pid file; false when it is gone, or its number is another's by now.
pid_of() { # NAME
    local pid
    pid=$(cat "$run/$1.pid" 2>/dev/null) && grep -qsF "$run" "/proc/$pid/cmdline" && echo "$pid"
}

# The first half of addresses that nothing here uses, from the range that Docker takes.
free_network() {
    local first=$((16#${checkout:0:2})) n network
    for n in {0..13}; do
        network=172.$(((first + n) % 14 + 18))
        ip -4 route show table all | grep -qF " $network." || break
    done
    echo "$network"
}

write_configuration() { # NETWORK
    cat >"$run/containerd.toml" <<END
version = 2
root = "$home/containerd"
state = "$run/containerd"
disabled_plugins = ["io.containerd.grpc.v1.cri"]
[grpc]
address = "$run/containerd.sock"
END
    cat >"$run/dockerd.json" <<END
{
  "hosts": ["unix://$run/docker.sock"],
  "containerd": "$run/containerd.sock",
  "data-root": "$home/images",
  "exec-root": "$run/exec",
  "bridge": "$bridge",
  "default-address-pools": [{"base": "$1.0.0/16", "size": 24}]
}
END
}

# A group of its own in the host's accounting for each of the two, which tells what they use.
groups() { # NAME
    local hierarchy
    for hierarchy in /sys/fs/cgroup/cpuacct /sys/fs/cgroup; do
        [[ ! -e $hierarchy/cgroup.procs ]] || echo "$hierarchy/${run##*/}-$1"
    done
}

launch() { # NAME ARGUMENTS...
    local group
    (
        for group in $(groups "$1"); do
            mkdir -p "$group" && echo "$BASHPID" >"$group/cgroup.procs"
        done
        exec setsid "$@" >"$home/$1.log" 2>&1 </dev/null 9>&-
    ) &
    echo $! >"$run/$1.pid"
}

wait_for() { # COMMAND...
    local deadline=$((SECONDS + answer_s))
    until "$@"; do
        # Not pid_of: a process that was just started may still look like this script.
        ((SECONDS < deadline)) && kill -0 "$(<"$run/containerd.pid")" 2>/dev/null || return
        sleep 0.2
    done
}

launch_engine() {
    local network command
    network=$(free_network)
    mkdir -p "$run"
    write_configuration "$network"
    # Engines of two checkouts must not share a bridge and its addresses.
    ip link show "$bridge" >/dev/null 2>&1 || ip link add "$bridge" type bridge
    ip address replace "$network.0.1/24" dev "$bridge"
    # What there is of others, left alone at the end. Kept from an earlier start that was not ended.
    for command in "${tables[@]}"; do
        [[ -e $run/$command.before ]] || "$command-save" >"$run/$command.before" ||
            rm "$run/$command.before" # a kernel without IPv6
    done
    # Found off, dockerd would switch it on and forbid all that is not its own.
    [[ -e $run/ip_forward ]] || cp /proc/sys/net/ipv4/ip_forward "$run/ip_forward"
    echo 1 >/proc/sys/net/ipv4/ip_forward
    pid_of containerd >/dev/null || launch containerd --config "$run/containerd.toml"
    # `step` runs this where a failure does not end the script.
    wait_for test -S "$run/containerd.sock" || return
    launch dockerd --config-file "$run/dockerd.json" --pidfile "$run/dockerd.lock"
    wait_for answers
}

# Leaves nothing of a start that failed.
start_engine() {
    launch_engine && return
    tail -n 5 "$home/containerd.log" "$home/dockerd.log"
    end_engine
    return 1
}

end() { # NAME
    local pid
    pid=$(pid_of "$1") || return 0
    kill "$pid"
    for _ in {1..300}; do
        pid_of "$1" >/dev/null || return 0
        sleep 0.1
    done
    kill -9 "$pid"
}

# The bridges of this engine, while it answers.
bridges() {
    echo "$bridge"
    timeout 20 docker network ls --no-trunc --filter driver=bridge --format "{{.ID}}" 2>/dev/null |
        sed 's/^\(.\{12\}\).*/br-\1/'
}

# The rules of dockerd outlive it. Only those go that would not be there without this engine: the
# firewall of the host is somebody else's.
remove_rules() { # BRIDGES
    local command before
    for command in "${tables[@]}"; do
        before=$run/$command.before
        [[ -e $before ]] || continue
        "$command-save" >"$run/$command.now" || return
        # Beside another dockerd the chains may be that one's.
        ! other_engine || before=$run/$command.now
        awk -v bridges="$1" -f scripts/docker-rules.awk then=before "$before" \
            then=now "$run/$command.now" | "$command-restore" --noflush || return
    done
}

other_engine() {
    grep -qsaxzE "(.*/)?dockerd" /proc/[0-9]*/cmdline
}

# What the two leave mounted, innermost first.
unmount() {
    awk -v home="$home/" -v run="$run/" 'index($2, home) == 1 || index($2, run) == 1 { print $2 }' \
        /proc/mounts | sort --reverse | xargs --no-run-if-empty umount
}

end_engine() {
    local bridges name
    bridges=$(bridges | paste --serial --delimiters=' ')
    end dockerd && end containerd && unmount || return
    remove_rules "$bridges"
    for name in $bridges; do
        ! ip link show "$name" >/dev/null 2>&1 || ip link delete "$name"
    done
    if [[ -e $run/ip_forward ]] && ! other_engine; then
        cat "$run/ip_forward" >/proc/sys/net/ipv4/ip_forward
    fi
    { groups dockerd && groups containerd; } | xargs --no-run-if-empty rmdir
    rm -rf "$run" "$home/environment"
}

# ---- the base image ----

# As the image on Docker Hub is made, from this machine's mirror.
make_base_image() {
    local archive=$home/base.tar
    local kept=(--dpkgopt="path-exclude=/usr/share/"{doc,man,info,locale,lintian}"/*"
        --dpkgopt="path-include=/usr/share/doc/*/copyright")
    sources "$base_release" >"$home/base.list" &&
        mmdebstrap --mode=root --variant=minbase "${kept[@]}" "$base_release" "$archive" - \
            <"$home/base.list" &&
        docker import --change 'CMD ["bash"]' "$archive" "$base_image" &&
        rm "$archive"
}

ensure_base_image() {
    docker image inspect "$base_image" >/dev/null 2>&1 && return
    timeout "$pull_s" docker pull --quiet "$base_image" >/dev/null 2>&1 && return
    [[ $ID == debian ]] ||
        give_up "$base_image can neither be pulled here nor made (that takes Debian's mirrors)" \
            "load it: docker load"
    [[ -e $home/apt/$VERSION_CODENAME/lists ]] ||
        step "package lists of $VERSION_CODENAME" update_lists "$VERSION_CODENAME"
    step "$base_image, which cannot be pulled here, from Debian's packages" make_base_image
}

# ---- what to call ----

start() {
    local address=
    mkdir -p "$home"
    exec 9>"$home/lock"
    flock 9
    if own_is_usable; then
        own_environment
    elif ! usable; then
        answers || address=unix://$run/docker.sock
        [[ $(id -u) == 0 ]] || give_up "$(lacking), and what takes its place here takes root" \
            "install it, or run: sudo $0 start"
        ensure_packages
        set_paths
        write_environment "$address"
        own_environment
        [[ -z $address ]] || step "starting a Docker Engine" start_engine
    fi
    ensure_base_image
}

print_environment() {
    if own_is_usable; then
        cat "$home/environment"
        return
    fi
    usable && return
    echo "hostbench: $(lacking); get it: scripts/docker-engine.sh start" >&2
    return 1
}

stop() {
    [[ -e $run ]] || return 0
    set_paths
    [[ ! -e $home/environment ]] || own_environment
    step "stopping the Docker Engine" end_engine
}

case ${1:-} in
    start) start ;;
    env) print_environment ;;
    stop) stop ;;
    *)
        echo "usage: $0 start|env|stop" >&2
        exit 2
        ;;
esac
