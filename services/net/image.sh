#!/bin/sh
# What the image of the net service has besides our programs. Runs as root while it is built.
set -eu

# The peers.
apt-get install --yes --no-install-recommends iperf3 iputils-ping qperf sockperf

# The socket of the service lies there; a new volume takes over the owner.
install --directory --owner=10001 --group=10001 --mode=755 /run/hostbench
