import { createRequire } from 'node:module'

/** The package's version. It finds itself by name, so that it works from the sources and from the build. */
export function packageVersion(): string {
  const { version }: { version: string } = createRequire(import.meta.url)('webhook-relay/package.json')
  return version
}
