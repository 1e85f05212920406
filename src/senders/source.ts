import { isDeepStrictEqual } from 'node:util'
import { pathOf, shownSource } from '../base/source-names.js'
import type { SourceSettings, WebhookSecrets } from '../base/settings.js'
import { indexHeaders } from '../http/headers.js'
import type { NamedEvent } from '../journal/types.js'
import { wholeName } from './identity.js'
import type { WebhookRequest } from './request.js'
import type { Sender } from './sender.js'
import { senderOf } from './senders.js'

/** A sender as the user has set it up: with a name and secrets, and an address of its own. */
export interface Source {
  readonly name: string
  readonly sender: Sender
  readonly secrets: WebhookSecrets
  /** Address that its sender was given, if the settings have a public one. */
  readonly payloadUrl?: string | undefined
}

/** Creates a source from its settings. @throws RelayError `settings` as `senderOf` */
export function createSource({ name, scheme, secrets }: SourceSettings, publicUrl?: string): Source {
  const payloadUrl = publicUrl === undefined ? {} : { payloadUrl: publicUrl + pathOf(name) }
  return { name, sender: senderOf(scheme), secrets, ...payloadUrl }
}

/** Name of an event in the journal. Only the code host's has a separate action; elsewhere both are one name. */
export function storedEvent(source: string, { event, action }: NamedEvent): NamedEvent {
  return shownSource(source) === undefined
    ? { event, action }
    : { event: wholeName(event, action), action: null }
}

/** Sources that relay accepts deliveries from, by name. A later read may find others. */
export interface Sources {
  get(name: string): Source | undefined
  has(name: string): boolean
  values(): Iterable<Source>
}

/** The sources of a relay, which are replaced as a whole while it runs. A request that has begun continues with the source that it found. */
export class SourceTable implements Sources {
  #all: ReadonlyMap<string, Source>

  constructor(all: readonly Source[]) {
    this.#all = byName(all)
  }

  get(name: string): Source | undefined {
    return this.#all.get(name)
  }

  has(name: string): boolean {
    return this.#all.has(name)
  }

  values(): Iterable<Source> {
    return this.#all.values()
  }

  /** Returns the names of those that are new or have another scheme or secret, and of those that are gone. */
  replace(all: readonly Source[]): {
    readonly changed: readonly string[]
    readonly removed: readonly string[]
  } {
    const before = this.#all
    this.#all = byName(all)
    const changed = all.filter((source) => !isSame(source, before.get(source.name)))
    return {
      changed: changed.map(({ name }) => name),
      removed: [...before.keys()].filter((name) => !this.#all.has(name)),
    }
  }
}

function byName(all: readonly Source[]): ReadonlyMap<string, Source> {
  return new Map(all.map((source) => [source.name, source]))
}

function isSame({ sender, secrets }: Source, other: Source | undefined): boolean {
  const texts = ({ current, previous }: WebhookSecrets) => [current.reveal(), previous?.reveal()]
  return sender.scheme === other?.sender.scheme && isDeepStrictEqual(texts(secrets), texts(other.secrets))
}

/**
 * Explains a request that another source's secret proves: it was sent to the wrong address. Undefined if none does. A
 * secret itself proves nothing here, since it is compared where it belongs.
 */
export function provenElsewhere(
  request: WebhookRequest,
  source: string,
  all: Iterable<Source>,
): string | undefined {
  const received = { ...request, lines: indexHeaders(request.headers) }
  for (const { name, sender, secrets } of all)
    if (name !== source && sender.coverage(secrets.current) === 'body' && sender.prove(received, secrets))
      return `it is a delivery of ${shownSource(name) ?? 'the code host'}, whose secret proves it: enter an address that ends in ${pathOf(name)} at the sender`
  return undefined
}
