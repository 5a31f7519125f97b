# The operator: docker build -t eagleray/operator:0.1.0 .
# Both stages have the same Python at the same place, so that the environment can be carried over.
FROM python:3.13.9-slim-bookworm AS build

WORKDIR /build
COPY requirements/image.lock requirements/build.lock requirements/
RUN python -m venv /opt/eagleray \
    && /opt/eagleray/bin/pip install --no-cache-dir --require-hashes -r requirements/image.lock \
    && pip install --no-cache-dir --require-hashes -r requirements/build.lock

COPY pyproject.toml README.md LICENSE ./
COPY src src
# What the operator is called in KubeRay's image, so that its values and manifests find it.
RUN pip wheel --no-cache-dir --no-deps --no-build-isolation --wheel-dir dist . \
    && /opt/eagleray/bin/pip install --no-cache-dir --no-deps --no-index dist/*.whl \
    && /opt/eagleray/bin/pip uninstall --yes pip \
    && /opt/eagleray/bin/python -m compileall -q /opt/eagleray/lib \
    && printf '#!/bin/sh\nexec /opt/eagleray/bin/eagleray operator "$@"\n' > /manager \
    && chmod 0755 /manager

FROM python:3.13.9-slim-bookworm

LABEL org.opencontainers.image.title="Eagleray operator" \
      org.opencontainers.image.version="0.1.0" \
      org.opencontainers.image.licenses="Apache-2.0"

COPY --from=build /opt/eagleray /opt/eagleray
COPY --from=build /manager /manager

# Nothing is written, whatever the file system allows.
ENV PATH=/opt/eagleray/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1

USER 65532:65532
# Metrics, health and webhooks.
EXPOSE 8080 8082 9443
ENTRYPOINT ["/manager"]
