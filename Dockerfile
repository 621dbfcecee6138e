# One image for all programs of Sluice; the argument says which one runs:
#   docker build -t sluice .
#   docker run sluice coordinator | executor | timer [--SETTING VALUE...]
#   docker run sluice validate FILE... (or any other command of the tool `sluice`)
# --build-arg TESTS=ON also builds and runs the unit tests against this Debian's libraries.

FROM debian:trixie-slim AS build
WORKDIR /src
COPY deploy/packages.sh deploy/packages.sh
RUN deploy/packages.sh build
COPY CMakeLists.txt CMakePresets.json LICENSE ./
COPY proto proto
COPY common common
COPY services services
RUN cmake --preset release >/dev/null && cmake --build --preset release
# What goes into the image: the programs, and the names of the packages whose libraries they are linked with.
RUN mkdir -p /out/bin && cp build/release/bin/sluice* /out/bin/ && strip --strip-debug /out/bin/* && \
	for library in $(ldd /out/bin/* | sed -n 's/.*=> \(\/[^ ]*\).*/\1/p' | sort -u); do \
		dpkg -S "$(realpath "$library")" || exit 1; \
	done >/out/owners && cut -d: -f1 /out/owners | sort -u >/out/packages
COPY tests tests
COPY examples examples
ARG TESTS=OFF
RUN [ "$TESTS" = OFF ] || { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq \
		--no-install-recommends libcriterion-dev python3 >/dev/null && \
	cmake -S . -B build/tests -G Ninja -DCMAKE_BUILD_TYPE=Debug >/dev/null && \
	cmake --build build/tests && ctest --test-dir build/tests --timeout 300 --output-on-failure -R '^unit/'; }

FROM debian:trixie-slim
LABEL org.opencontainers.image.title=Sluice org.opencontainers.image.licenses=Apache-2.0
COPY --from=build /out/packages /usr/share/sluice/packages
RUN apt-get update -qq && \
	DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends ca-certificates tzdata \
		$(cat /usr/share/sluice/packages) >/dev/null && \
	rm -rf /var/lib/apt/lists/* /var/cache/apt/archives/*.deb && \
	groupadd --system --gid 10001 sluice && \
	useradd --system --uid 10001 --gid sluice --no-create-home --home-dir / --shell /usr/sbin/nologin sluice
COPY --from=build /out/bin/ /usr/local/bin/
COPY deploy/docker/sluice-entrypoint deploy/docker/sluice-health /usr/local/bin/
ENV TZ=UTC LANG=C.UTF-8 SLUICE_HTTP_ADDRESS=0.0.0.0 SLUICE_HTTP_PORT=8080
USER sluice
EXPOSE 8080
HEALTHCHECK --interval=5s --timeout=4s --start-period=60s --retries=3 CMD ["sluice-health"]
ENTRYPOINT ["sluice-entrypoint"]
CMD ["--help"]
