#!/bin/sh
# What the image of the gpu service has besides our programs. Runs as root while it is built.
set -eu

# The peer, and the loader of OpenCL drivers. The drivers of a vendor are packages that the build
# argument OPENCL_DRIVERS names; compose.amd.yaml has one.
# shellcheck disable=SC2086 # several packages, or none
apt-get install --yes --no-install-recommends clpeak ocl-icd-libopencl1 $OPENCL_DRIVERS

# The name of NVIDIA's driver, which comes with the driver of the host.
install --directory /etc/OpenCL/vendors
echo libnvidia-opencl.so.1 >/etc/OpenCL/vendors/nvidia.icd
