import type { OptionName } from './options.js'

/** Where a value came from. `text` is for messages: `--port`, `RELAY_PORT`, `RELAY_PORT in .env`, a file's path. */
export interface Origin {
  readonly kind: 'flag' | 'environment' | 'dotenv' | 'project' | 'user' | 'setup'
  readonly text: string
}

/** Whether it is from a file of the working folder or its project, whose author can be anyone. */
export function isOfFolder({ kind }: Origin): boolean {
  return kind === 'project' || kind === 'dotenv'
}

/** Where each value came from; nothing for a default. */
export type Origins = { readonly [Name in OptionName]?: Origin }

export interface Given {
  readonly value: unknown
  readonly origin: Origin
}

/** One place where settings can be set. */
export type Source = (name: OptionName) => Given | undefined

/** Environment variables, or those of a `.env`. */
export type Variables = Readonly<Record<string, string | undefined>>
