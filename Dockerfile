# The service and its locked dependencies; no compiler, no shell on the way to the process, nothing written at run time.
ARG PYTHON_IMAGE=python:3.11-slim

FROM ${PYTHON_IMAGE} AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 \
    PIP_NO_CACHE_DIR=1 \
    PIP_ROOT_USER_ACTION=ignore
RUN ["python", "-m", "venv", "/opt/gpu-autoscaler"]
RUN ["python", "-m", "venv", "/opt/build"]
WORKDIR /src
COPY requirements/ requirements/
RUN ["/opt/gpu-autoscaler/bin/pip", "install", "--require-hashes", "--only-binary=:all:", "-r", "requirements/runtime.txt"]
RUN ["/opt/build/bin/pip", "install", "--require-hashes", "--only-binary=:all:", "-r", "requirements/build.txt"]
COPY pyproject.toml README.md LICENSE ./
COPY config/ config/
COPY autoscaler/ autoscaler/
RUN ["/opt/build/bin/pip", "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", "/wheels", "."]
RUN ["/opt/gpu-autoscaler/bin/pip", "install", "--no-deps", "--no-index", "--find-links", "/wheels", "gpu-autoscaler"]
RUN ["/opt/gpu-autoscaler/bin/gpu-autoscaler", "version"]

FROM ${PYTHON_IMAGE}
LABEL org.opencontainers.image.title="gpu-autoscaler" \
      org.opencontainers.image.licenses="Apache-2.0"
# Same path as it was built at: the commands of a virtual environment name their interpreter in full.
COPY --from=build /opt/gpu-autoscaler /opt/gpu-autoscaler
# HOME: the user has no entry in passwd, and a library that reads kubeconfigs asks for a home when it is imported.
ENV PATH=/opt/gpu-autoscaler/bin:$PATH \
    HOME=/ \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
WORKDIR /
USER 65532:65532
EXPOSE 8080
ENTRYPOINT ["/opt/gpu-autoscaler/bin/gpu-autoscaler"]
CMD ["run"]
