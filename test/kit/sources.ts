import type { Header } from './delivery.js'
import type { Received } from './receiver.js'
import type { Sender } from './senders.js'

/** The variables with the secrets of sources. */
export const secretsOf = (
  sources: readonly (readonly [string, Pick<Sender, 'secret'>])[],
): Record<string, string> =>
  Object.fromEntries(
    sources.map(([name, { secret }]) => [
      `RELAY_SOURCE_${name.toUpperCase().replaceAll('-', '_')}_SECRET`,
      secret,
    ]),
  )

/** The flags of a relay that takes deliveries of these senders, and forwards those of each to a path of its name. */
export const flagsOf = (
  sources: readonly (readonly [string, Pick<Sender, 'scheme'>])[],
  to?: string,
): string[] =>
  sources.flatMap(([name, { scheme }]) => [
    '--source',
    `${name}=${scheme}`,
    ...(to === undefined ? [] : ['--forward', `${name}/*=${to}/${name}`]),
  ])

/** The header lines of a request but for those of its connection, and relay's own. */
export const sentLines = ({ headers }: Received): readonly Header[] =>
  headers.filter(([name]) => !/^(?:host|connection|content-length|x-relay-attempt)$/i.test(name))
