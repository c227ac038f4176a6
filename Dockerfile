# The worker. `docker build -t siltstone .`; needs no compiler: every dependency is a wheel.
FROM python:3.13-slim AS build

ARG EXTRAS=embedded
WORKDIR /src
RUN python -m venv /opt/venv
COPY pyproject.toml constraints.txt README.md ./
COPY schemas schemas
COPY tables tables
COPY streams streams
RUN /opt/venv/bin/python -m pip install --no-cache-dir --disable-pip-version-check \
    --constraint constraints.txt ".[${EXTRAS}]"

FROM python:3.13-slim

ENV PATH=/opt/venv/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    SILTSTONE_DATA_DIR=/data

RUN useradd --system --uid 10001 --create-home siltstone \
    && install --directory --owner=10001 /data
COPY --from=build /opt/venv /opt/venv

USER 10001
WORKDIR /home/siltstone
VOLUME /data

# 503 while tables are recovered, the model is loaded and shards are opened; 200 after.
HEALTHCHECK --interval=15s --timeout=5s --start-period=120s --retries=4 \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/readyz', timeout=4)"]

CMD ["siltstone", "worker"]
