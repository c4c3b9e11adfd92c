# Sourced by the scripts that unpack packages and install nothing. apt_home: where apt's lists and
# files are kept.
# shellcheck shell=bash disable=SC2154

. /etc/os-release

# apt_get RELEASE ARGUMENTS...: the system's apt-get with lists and files of its own, so that
# packages of another release can be had and no user's lists change.
apt_get() {
    local own=$apt_home/$1 sources=()
    [[ $1 == "$VERSION_CODENAME" ]] || sources=(-o "Dir::Etc::SourceList=$own/sources.list"
        -o Dir::Etc::SourceParts=/dev/null)
    shift
    apt-get --quiet --yes "${sources[@]}" -o "Dir::State::Lists=$own/lists" \
        -o "Dir::Cache=$own/cache" -o APT::Sandbox::User=root -o Debug::NoLocking=1 "$@"
}

# sources RELEASE: the machine's own mirrors, with another release of the same distribution.
sources() {
    local keys=/usr/share/keyrings/$ID-archive-keyring.gpg
    [[ -e $keys ]] && keys="[signed-by=$keys]" || keys=
    apt_get "$VERSION_CODENAME" indextargets \
        --format "\$(IDENTIFIER) \$(RELEASE) \$(REPO_URI) \$(COMPONENT)" |
        awk -v own="^$VERSION_CODENAME(-updates|-security)?$" -v wanted="$1" -v keys="$keys" '
            $1 == "Packages" && $2 ~ own {
                sub(/^[^-]*/, wanted, $2)
                print "deb", keys, $3, $2, $4
            }' | sort --unique
}

# One broken source of many is no reason to stop: the packages may come from the others.
update_lists() { # RELEASE
    local own=$apt_home/$1
    mkdir -p "$own/lists/partial" "$own/cache/archives/partial"
    if [[ $1 != "$VERSION_CODENAME" ]]; then
        sources "$1" >"$own/sources.list"
        if [[ ! -s $own/sources.list ]]; then
            echo "apt has no package source of $VERSION_CODENAME"
            return 1
        fi
    fi
    apt_get "$1" update || echo "going on with the lists that came"
}

download() { # RELEASE DIRECTORY PACKAGE...
    local release=$1 directory=$2
    shift 2
    (cd "$directory" && apt_get "$release" download "$@")
}
