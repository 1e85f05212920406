import type { OptionName } from '../options.js'

/** Where a value came from. `text` is for people: `--port`, `RELAY_PORT`, `RELAY_PORT in .env`, a file's path. */
export interface Origin {
  readonly kind: 'flag' | 'environment' | 'dotenv' | 'project' | 'user'
  readonly text: string
}

/** Where each value came from; none for what nobody set. */
export type Origins = { readonly [Name in OptionName]?: Origin }

export interface Given {
  readonly value: unknown
  readonly origin: Origin
}

/** One place where settings may be given. */
export type Source = (name: OptionName) => Given | undefined
