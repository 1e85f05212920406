# relay as an image: docker build --tag webhook-relay .
# docs/deploy.md describes how it runs. test/service/image.test.ts runs these steps.

FROM node:24-bookworm-slim AS build
WORKDIR /src
COPY package.json package-lock.json ./
# Without install scripts: a container has no keychain for keytar, and the other packages come built.
RUN npm ci --ignore-scripts --no-audit --no-fund
COPY . .
RUN npm pack --pack-destination /tmp
WORKDIR /opt/relay
# The tarball, and what the lock file has for it. Of SQLite only what is built for Linux.
RUN tar -xzf /tmp/webhook-relay-*.tgz --strip-components=1 \
  && cp /src/package-lock.json . \
  && npm ci --omit=dev --omit=optional --ignore-scripts --no-audit --no-fund \
  && cd node_modules/@photostructure/sqlite \
  && rm -r src prebuilds/darwin-* prebuilds/win32-*

FROM debian:bookworm-slim
COPY --from=build /usr/local/bin/node /usr/local/bin/node
COPY --from=build /opt/relay /opt/relay
RUN ln -s /opt/relay/dist/bin/relay.cjs /usr/local/bin/relay \
  && groupadd --gid 10001 relay \
  && useradd --no-log-init --uid 10001 --gid relay --home-dir /var/lib/relay --shell /usr/sbin/nologin relay \
  && install -d -m 700 -o relay -g relay /var/lib/relay
ENV NODE_ENV=production RELAY_HOME=/var/lib/relay RELAY_HOST=0.0.0.0
USER relay
WORKDIR /var/lib/relay
VOLUME /var/lib/relay
EXPOSE 8787
# By node, since the image has no other HTTP client.
HEALTHCHECK --interval=10s --timeout=3s --start-period=30s CMD ["node", "-e", "require('http').get('http://127.0.0.1:' + (process.env.RELAY_PORT || 8787) + '/ready', ({ statusCode }) => process.exit(statusCode === 200 ? 0 : 1)).on('error', () => process.exit(1))"]
# Without a shell in between, so that signals reach relay.
ENTRYPOINT ["relay"]
CMD ["serve", "--keep-running"]
