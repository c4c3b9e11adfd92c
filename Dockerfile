# All images of the stack. compose.yaml builds them; by hand:
#   docker build --target service --build-arg SUBSYSTEM=cpu .
#   docker build --target orchestrator .
# What the image of one subsystem has besides stands beside it, in services/<subsystem>/image.sh.

FROM debian:trixie-slim AS base
RUN --mount=type=cache,target=/var/lib/apt/lists,sharing=locked \
    --mount=type=cache,target=/var/cache/apt,sharing=locked \
    apt-get update && \
    apt-get install --yes --no-install-recommends python3 && \
    useradd --uid 10001 --user-group --home-dir /tmp --shell /usr/sbin/nologin hostbench
ENV PATH=/opt/hostbench/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1

# /opt/hostbench becomes a virtual environment without pip; /opt/pip, which fills it, stays behind.
FROM base AS environment
RUN --mount=type=cache,target=/var/lib/apt/lists,sharing=locked \
    --mount=type=cache,target=/var/cache/apt,sharing=locked \
    apt-get update && \
    apt-get install --yes --no-install-recommends python3-venv && \
    python3 -m venv /opt/pip && \
    python3 -m venv --without-pip /opt/hostbench && \
    echo /opt/hostbench/app >"$(echo /opt/hostbench/lib/python3*/site-packages)/hostbench.pth"

# A build behind a proxy that has certificates of its own passes them as the secret ca_bundle.
FROM environment AS service-packages
COPY requirements/service.txt /tmp/
RUN --mount=type=cache,target=/root/.cache/pip \
    --mount=type=secret,id=ca_bundle \
    if [ -s /run/secrets/ca_bundle ]; then export PIP_CERT=/run/secrets/ca_bundle; fi && \
    /opt/pip/bin/pip --python /opt/hostbench/bin/python --disable-pip-version-check \
        install --require-hashes --requirement /tmp/service.txt

FROM environment AS orchestrator-packages
COPY requirements/orchestrator.txt /tmp/
RUN --mount=type=cache,target=/root/.cache/pip \
    --mount=type=secret,id=ca_bundle \
    if [ -s /run/secrets/ca_bundle ]; then export PIP_CERT=/run/secrets/ca_bundle; fi && \
    /opt/pip/bin/pip --python /opt/hostbench/bin/python --disable-pip-version-check \
        install --require-hashes --requirement /tmp/orchestrator.txt

# Our own Python code of every part, compiled, since the images run read-only.
FROM base AS code
WORKDIR /opt/hostbench/app
COPY hostbench hostbench
COPY services services
COPY orchestrator orchestrator
COPY suites suites
RUN rm -r services/*/bench services/*/kernels services/*/image.sh && \
    python3 -m compileall -q . && \
    chmod -R a+rX . # whatever the umask of the checkout was

# ---- the services ----

# The benchmark program of a subsystem, with the compiler and everything else that making it takes.
FROM environment AS program
RUN --mount=type=cache,target=/var/lib/apt/lists,sharing=locked \
    --mount=type=cache,target=/var/cache/apt,sharing=locked \
    apt-get update && \
    apt-get install --yes --no-install-recommends gcc libc6-dev make
WORKDIR /src
COPY scripts/find-python.sh scripts/nvrtc.sh scripts/openblas.sh scripts/step.sh scripts/
COPY requirements/gpu-build.txt requirements/openblas.txt requirements/
COPY Makefile pyproject.toml ./
COPY harness harness
ARG SUBSYSTEM
COPY services/$SUBSYSTEM/bench services/$SUBSYSTEM/bench
# A pattern, since most subsystems have no such directory.
COPY services/$SUBSYSTEM/kernel[s] services/$SUBSYSTEM/kernels
# What `packages` would look for is there. pip is for NVIDIA's compiler of the GPU kernels and for
# OpenBLAS.
RUN --mount=type=cache,target=/root/.cache/pip \
    --mount=type=secret,id=ca_bundle \
    if [ -s /run/secrets/ca_bundle ]; then export PIP_CERT=/run/secrets/ca_bundle; fi && \
    make --jobs="$(nproc)" --old-file=packages programs SUBSYSTEMS="$SUBSYSTEM"

FROM base AS service
COPY --from=service-packages /opt/hostbench /opt/hostbench
ARG SUBSYSTEM
ENV HOSTBENCH_PROGRAMS=/opt/hostbench/bin \
    HOSTBENCH_SUBSYSTEM="${SUBSYSTEM:?give one, such as --build-arg SUBSYSTEM=cpu}"
# Debian packages with drivers of OpenCL, for the gpu service.
ARG OPENCL_DRIVERS=
RUN --mount=type=cache,target=/var/lib/apt/lists,sharing=locked \
    --mount=type=cache,target=/var/cache/apt,sharing=locked \
    --mount=type=bind,source=services/$SUBSYSTEM/image.sh,target=/tmp/image.sh \
    apt-get update && sh /tmp/image.sh
COPY --from=program /src/build/release/$SUBSYSTEM-bench /opt/hostbench/bin/
# Of the cpu service alone: a pattern, since no other has it.
COPY --from=program /src/build/openbla[s] /opt/hostbench/openblas/
COPY --from=code /opt/hostbench/app/hostbench /opt/hostbench/app/hostbench
COPY --from=code /opt/hostbench/app/services /opt/hostbench/app/services
USER 10001:10001
WORKDIR /tmp
CMD ["sh", "-c", "exec python3 -m hostbench.service \"$HOSTBENCH_SUBSYSTEM\""]

# ---- the orchestrator ----

FROM base AS orchestrator
# Volumes there take over their owner; in /run/hostbench are the sockets of services.
RUN install --directory --owner=hostbench --group=hostbench \
        /var/lib/hostbench/results /run/hostbench
COPY --from=orchestrator-packages /opt/hostbench /opt/hostbench
COPY --from=code /opt/hostbench/app /opt/hostbench/app
ENV HOSTBENCH_RESULTS=/var/lib/hostbench/results \
    HOSTBENCH_LISTEN=0.0.0.0:8000
USER 10001:10001
WORKDIR /tmp
EXPOSE 8000
CMD ["python3", "-m", "orchestrator"]
