# One image for the agent, the job and, where the job runs on Kubernetes, Spark's executors, and a small one with commands alone, for a look
# into a broker's pod (--target look). `make image` builds both.
# BASE is any Debian 12 or newer with apt. It has no default, because a tag may name another image tomorrow: `make image` makes a base of
# its own, or takes one by its digest.
ARG BASE

# hadolint ignore=DL3006
FROM ${BASE} AS python
# hadolint ignore=DL3008
RUN apt-get update \
 && apt-get install -y --no-install-recommends python3 python3-venv \
 && apt-get clean \
 && rm -rf /var/lib/apt/lists/*

FROM python AS build
WORKDIR /src
COPY requirements-build.txt requirements-run.txt ./
RUN python3 -m venv /opt/segtail \
 && /opt/segtail/bin/pip install --no-cache-dir --disable-pip-version-check --require-hashes --requirement requirements-run.txt
COPY pyproject.toml README.md LICENSE ./
COPY docs/man docs/man
COPY docs/runbooks docs/runbooks
COPY conf conf
COPY streaming streaming
# What builds the wheel stays behind.
RUN python3 -m venv /opt/build \
 && /opt/build/bin/pip install --no-cache-dir --disable-pip-version-check --require-hashes --requirement requirements-build.txt \
 && /opt/build/bin/python -m build --wheel --no-isolation --outdir /wheel \
 && /opt/segtail/bin/pip install --no-cache-dir --disable-pip-version-check --no-deps --no-index /wheel/*.whl \
 && /opt/segtail/bin/pip check \
 && /opt/segtail/bin/pip uninstall --yes --quiet pip setuptools
COPY --chmod=755 helm/entrypoint.py /opt/segtail/bin/entrypoint
COPY --chmod=755 helm/sidecar.py /opt/segtail/bin/sidecar

# Without Spark and Java: the packages of the commands on log dirs.
FROM python AS commands
WORKDIR /src
COPY requirements-agent.txt ./
RUN python3 -m venv /opt/segtail \
 && /opt/segtail/bin/pip install --no-cache-dir --disable-pip-version-check --require-hashes --requirement requirements-agent.txt
COPY install/lean ./
COPY --from=build /wheel /wheel
RUN /opt/segtail/bin/pip install --no-cache-dir --disable-pip-version-check --no-deps --no-index /wheel/*.whl \
 && /opt/segtail/bin/pip check \
 && /opt/segtail/bin/pip uninstall --yes --quiet pip setuptools \
 && ./lean /opt/segtail/lib/python3*/site-packages

# hadolint ignore=DL3006
FROM ${BASE} AS look
# hadolint ignore=DL3008
RUN apt-get update \
 && apt-get install -y --no-install-recommends python3 \
 && apt-get clean \
 && rm -rf /var/lib/apt/lists/*
COPY --from=commands /opt/segtail /opt/segtail
ENV PATH=/opt/segtail/bin:$PATH \
    HOME=/tmp \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONSAFEPATH=1
USER 10001:10001
WORKDIR /tmp
ENTRYPOINT ["/opt/segtail/bin/segtail"]
CMD ["--help"]

# hadolint ignore=DL3006
FROM ${BASE}
# hadolint ignore=DL3008
RUN apt-get update \
 && apt-get install -y --no-install-recommends openjdk-17-jre-headless procps python3 tini \
 && apt-get clean \
 && rm -rf /var/lib/apt/lists/* \
 && groupadd --gid 10001 segtail \
 && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /tmp --shell /usr/sbin/nologin segtail \
 && install -d -o 10001 -g 10001 /var/lib/segtail
COPY --from=build /opt/segtail /opt/segtail
ENV PATH=/opt/segtail/bin:$PATH \
    HOME=/tmp \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONSAFEPATH=1 \
    PYTHONUNBUFFERED=1 \
    SEGTAIL_CLASS_ARCHIVES=/opt/segtail/class-archives
# The classes that Spark's JVM loads, as it maps them: a job starts with half of the CPU of a JVM. What a job leaves in /tmp stays behind.
RUN segtail warm-up \
 && find /tmp -mindepth 1 -delete
# By number: Kubernetes cannot tell whether a name is root.
USER 10001:10001
WORKDIR /tmp
# The whole file system but these may be read-only; /tmp has to allow execution, because Spark unpacks native libraries there.
VOLUME ["/var/lib/segtail", "/tmp"]
EXPOSE 8815 9712 9713
ENTRYPOINT ["/usr/bin/tini", "-g", "--", "/opt/segtail/bin/entrypoint"]
CMD ["--help"]
# Last, because they differ with every commit. Who publishes the image adds where it and its source are to be found (podman build --label).
ARG BASE
ARG BASE_DIGEST=
ARG VERSION=
ARG REVISION=
LABEL org.opencontainers.image.title="segtail" \
      org.opencontainers.image.description="Watches Kafka's log segments on the broker's disk and exports what is appended, partition by partition, as Prometheus metrics" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.base.name="${BASE}" \
      org.opencontainers.image.base.digest="${BASE_DIGEST}"
