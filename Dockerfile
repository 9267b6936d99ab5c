# Builds Anabranch on Debian 12 and runs its demo:  docker build -t anabranch . && docker run --rm anabranch
# The first stage alone is the environment of .devcontainer/.
FROM debian:12 AS tools
WORKDIR /anabranch
COPY tools/setup tools/setup
RUN apt-get update && \
    apt-get install -y --no-install-recommends ca-certificates git \
        $(cat tools/setup/build.apt tools/setup/demo.apt tools/setup/test.apt tools/setup/lint.apt) && \
    rm -rf /var/lib/apt/lists/*

FROM tools
COPY . .
RUN ./dev demo --fast
CMD ["./dev", "demo"]
