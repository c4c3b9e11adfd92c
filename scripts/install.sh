#!/usr/bin/env bash
# install.sh DESTDIR PREFIX: lays out what hosts run without this checkout, below DESTDIR/PREFIX:
# bin/hostbench, lib/hostbench with programs, OpenBLAS, Python code, its requirements and suites, and
# the page of the manual and completion in share.
# Nothing in it names its own place, so the tree may be copied or mounted elsewhere.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/step.sh
[[ $2 == /* ]] || {
    echo "hostbench: PREFIX=$2 is not absolute; give one such as PREFIX=/opt/hostbench" >&2
    exit 2
}
root=$1$2
lib=$root/lib/hostbench

mkdir -p "$root/bin" "$lib"
# Of an earlier installation, so that nothing of it stays.
rm -rf "${lib:?}"/{app,bin,openblas}
# The far end of a pair of nodes is a service.
install_wheel "Python packages of requirements/cli.txt and service.txt" requirements/cli.txt \
    "$lib/python" -r requirements/service.txt
mkdir "$lib/bin"
install build/release/*-bench "$lib/bin"
if [[ -e build/openblas/installed ]]; then
    cp -R build/openblas "$lib" # where cpu-bench looks for it: beside the programs' directory
fi
scripts/copy-code.sh "$lib/app" "make install"

python=$(build/python/bin/python -c 'import sys; print("python%d.%d" % sys.version_info[:2])')
build/python/bin/python -m compileall -q "$lib/app" # nodes may mount the tree read-only
cat >"$root/bin/hostbench" <<END
#!/bin/sh
# hostbench as \`make install\` laid it out; the packages beside it are for $python.
lib=\$(dirname "\$(dirname "\$(readlink -f "\$0")")")/lib/hostbench
python=\${HOSTBENCH_PYTHON:-$python}
command -v "\$python" >/dev/null || {
    echo "hostbench: \$python is missing on this host; install it, or set HOSTBENCH_PYTHON to it" >&2
    exit 3
}
export HOSTBENCH_PROGRAMS="\${HOSTBENCH_PROGRAMS:-\$lib/bin}"
export PYTHONPATH="\$lib/app:\$lib/python\${PYTHONPATH:+:\$PYTHONPATH}"
exec "\$python" -m hostbench "\$@"
END
chmod 755 "$root/bin/hostbench"
PYTHONPATH=$lib/python scripts/manual.sh "$root/share" build/python/bin/python
chmod -R a+rX "$root/bin" "$lib" # whatever the umask was
echo "==> $root/bin/hostbench"
