# All images. compose.yaml builds those of the stack; by hand:
#   docker build --target service --build-arg SUBSYSTEM=cpu .
#   docker build --target orchestrator .
# The command line with the programs and peers of every subsystem, for campaigns over many hosts:
#   docker build --target hostbench --tag hostbench .
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

FROM environment AS hostbench-packages
# The far end of a pair of nodes is a service. It has hundreds of modules. A run imports a few
# of them, so they are not compiled.
COPY requirements/cli.txt requirements/kubernetes.txt requirements/service.txt /tmp/
RUN --mount=type=cache,target=/root/.cache/pip \
    --mount=type=secret,id=ca_bundle \
    if [ -s /run/secrets/ca_bundle ]; then export PIP_CERT=/run/secrets/ca_bundle; fi && \
    /opt/pip/bin/pip --python /opt/hostbench/bin/python --disable-pip-version-check \
        install --no-compile --require-hashes --requirement /tmp/cli.txt \
        --requirement /tmp/kubernetes.txt --requirement /tmp/service.txt && \
    /opt/pip/bin/pip --python /opt/hostbench/bin/python uninstall --yes setuptools && \
    python3 -m compileall -q -x 'pygments/lexers|lightkube/models|pydantic/v1' /opt/hostbench/lib && \
    printf '%s\n' '#!/opt/hostbench/bin/python3' 'import sys' \
        'from hostbench.__main__ import main' 'sys.exit(main())' >/opt/hostbench/bin/hostbench && \
    chmod 755 /opt/hostbench/bin/hostbench

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
COPY docs docs
RUN rm -r services/*/bench services/*/kernels services/*/stand-ins services/*/image.sh && \
    python3 -m compileall -q . && \
    chmod -R a+rX . # whatever the umask of the checkout was

# ---- what measures ----

# What a program and an image are made of: of one subsystem, or of all where SUBSYSTEM is not given.
# No Python, so that a change of it builds no program anew; the Makefile goes by subsystem.py.
FROM base AS sources
WORKDIR /services
COPY services .
ARG SUBSYSTEM
RUN for name in ${SUBSYSTEM:-*}; do \
        [ -d "$name/bench" ] || continue; \
        mkdir -p "/sources/$name" && touch "/sources/$name/subsystem.py" && \
        find "$name" -mindepth 1 -maxdepth 1 \( -name bench -o -name kernels -o -name stand-ins \
            -o -name image.sh \) -exec cp -r {} "/sources/$name/" \; || exit; \
    done

# The benchmark programs, with the compiler and everything else that making them takes.
FROM environment AS program
RUN --mount=type=cache,target=/var/lib/apt/lists,sharing=locked \
    --mount=type=cache,target=/var/cache/apt,sharing=locked \
    apt-get update && \
    apt-get install --yes --no-install-recommends gcc libc6-dev make
WORKDIR /src
COPY scripts/find-python.sh scripts/nvrtc.sh scripts/openblas.sh scripts/stand-ins.sh \
    scripts/step.sh scripts/
COPY requirements/gpu-build.txt requirements/openblas.txt requirements/
COPY Makefile pyproject.toml ./
COPY harness harness
# What `packages` would look for is there. The programs of every image link the same objects.
RUN make --jobs="$(nproc)" --old-file=packages harness
COPY --from=sources /sources services
# pip is for NVIDIA's compiler of the GPU kernels and for OpenBLAS. Images have no debugger, so they
# need no debug information, nor headers.
RUN --mount=type=cache,target=/root/.cache/pip \
    --mount=type=secret,id=ca_bundle \
    if [ -s /run/secrets/ca_bundle ]; then export PIP_CERT=/run/secrets/ca_bundle; fi && \
    make --jobs="$(nproc)" --old-file=packages programs && \
    strip --strip-debug build/release/*-bench && \
    if [ -e build/openblas/installed ]; then \
        strip --strip-unneeded build/openblas/scipy_openblas32/lib/*.so && \
        rm -r build/openblas/scipy_openblas32/include; \
    fi && \
    scripts/stand-ins.sh build/stand-ins

FROM base AS measuring
# Debian packages with drivers of OpenCL, for the gpu service.
ARG OPENCL_DRIVERS=
RUN --mount=type=cache,target=/var/lib/apt/lists,sharing=locked \
    --mount=type=cache,target=/var/cache/apt,sharing=locked \
    --mount=type=bind,from=sources,source=/sources,target=/tmp/sources \
    apt-get update && \
    for script in /tmp/sources/*/image.sh; do sh "$script" || exit; done
ENV HOSTBENCH_PROGRAMS=/opt/hostbench/bin
COPY --from=program /src/build/release/*-bench /opt/hostbench/bin/
# Of the cpu program alone: a pattern, since no other has it.
COPY --from=program /src/build/openbla[s] /opt/hostbench/openblas/
# What image.sh leaves out of packages, and a peer does not start without.
COPY --from=program /src/build/stand-ins /usr/lib/
COPY --from=code /opt/hostbench/app/hostbench /opt/hostbench/app/hostbench
COPY --from=code /opt/hostbench/app/services /opt/hostbench/app/services
USER 10001:10001
WORKDIR /tmp

# ---- the services ----

FROM measuring AS service
COPY --from=service-packages /opt/hostbench /opt/hostbench
ARG SUBSYSTEM
ENV HOSTBENCH_SUBSYSTEM="${SUBSYSTEM:?give one, such as --build-arg SUBSYSTEM=cpu}"
CMD ["sh", "-c", "exec python3 -m hostbench.service \"$HOSTBENCH_SUBSYSTEM\""]

# ---- the command line, with all that it measures ----

FROM measuring AS hostbench
COPY --from=hostbench-packages /opt/hostbench /opt/hostbench
COPY --from=code /opt/hostbench/app/suites /opt/hostbench/app/suites
# On a disk where the root is read-only: disk workloads make a directory of theirs in it.
VOLUME /var/tmp
ENTRYPOINT ["hostbench"]

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
