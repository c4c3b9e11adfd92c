#!/usr/bin/env bash
# system-packages.sh GROUP...: installs the packages of scripts/packages.txt that are missing.
# Where none is, it prints nothing and needs no rights. Exit 3: it cannot or may not install.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/step.sh

lock_wait_s=600
exec 3>&1 # past the log of `step`

find_missing() { # GROUP...: fills `missing` and `reasons`
    local group package why proof
    missing=() reasons=()
    while IFS='|' read -r group package why proof; do
        read -r group package <<<"$group $package" # trims
        [[ -n $group && " $* " == *" $group "* ]] || continue
        bash -c "$proof" >/dev/null 2>&1 </dev/null && continue
        missing+=("$package")
        read -r why <<<"$why"
        reasons+=("$(printf '  %-22s %s' "$package" "$why")")
    done <scripts/packages.txt
}

give_up() { # REASON
    echo "hostbench: $1. Install the packages above, as root:" >&2
    echo "  apt-get install --no-install-recommends ${missing[*]}" >&2
    echo "and give the same command again." >&2
    exit 3
}

# The terminal itself: under `make -j` standard input is not the user's.
has_terminal() {
    { : </dev/tty; } 2>/dev/null
}

agreed() {
    local answer
    read -r -p "Install them now with sudo apt-get? [Y/n] " answer </dev/tty || return 1
    [[ ${answer,,} =~ ^(y|yes|)$ ]]
}

# Fills `as_root`: the command that apt-get is run through.
get_rights() {
    command -v apt-get >/dev/null || give_up "there is no apt-get here"
    as_root=()
    [[ $(id -u) == 0 ]] && return
    command -v sudo >/dev/null || give_up "you are not root and there is no sudo here"
    if [[ ${YES:-} != 1 ]]; then
        has_terminal || give_up "there is no terminal to ask on (YES=1 goes ahead without asking)"
        agreed || give_up "nothing was installed"
    fi
    # apt-get reads its proxies from the environment, which sudo would clear.
    local kept=DEBIAN_FRONTEND,LC_ALL,http_proxy,https_proxy,ftp_proxy,no_proxy,all_proxy
    as_root=(sudo "--preserve-env=$kept")
    has_terminal || as_root+=(-n) # fails instead of waiting for a password
    "${as_root[@]}" apt-get --version >/dev/null || give_up "sudo refused"
}

# Runs apt-get, waiting while another one (unattended upgrades on a fresh machine, say) holds a
# lock. apt's own DPkg::Lock::Timeout does not cover the lock of the package lists.
apt_get() {
    local output waiting='' deadline=$((SECONDS + lock_wait_s))
    until output=$("${as_root[@]}" apt-get "$@" 2>&1); do
        if ((SECONDS > deadline)) || [[ $output != *"Could not get lock"* ]]; then
            echo "$output"
            return 1
        fi
        [[ $waiting ]] || echo "    another apt-get is at work; waiting for it, up to $lock_wait_s s" >&3
        waiting=yes
        sleep 2
    done
    echo "$output"
}

find_missing "$@"
((${#missing[@]})) || exit 0

echo "hostbench needs these system packages, which are missing here:"
printf '%s\n' "${reasons[@]}"
get_rights

export DEBIAN_FRONTEND=noninteractive LC_ALL=C
# One broken source of many is no reason to stop: the packages may come from the others.
step "apt-get update" apt_get update || echo "Going on with the package lists that are there."
step "apt-get install ${missing[*]}" \
    apt_get install --yes --no-install-recommends "${missing[@]}" || exit 1

find_missing "$@"
((${#missing[@]} == 0)) || {
    echo "hostbench: ${missing[*]}: installed, but what was needed is still not there." \
        "hostbench supports Debian 12, Ubuntu 24.04 and newer." >&2
    exit 3
}
