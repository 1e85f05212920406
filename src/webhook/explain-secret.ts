import { Secret } from '../base/secret.js'
import type { WebhookSecrets } from '../base/settings.js'
import { type Invalid, invalid } from './explanation.js'
import { verify } from './signature.js'

/** White space that copying adds before and after a secret, and its names in messages. */
const STARTS = ['', ' ', '\t', '\n'] as const
const ENDS = ['', '\n', '\r\n', ' ', '\t'] as const
const NAMES: Readonly<Record<string, string>> = {
  ' ': 'a space',
  '\t': 'a tab',
  '\n': 'a newline',
  '\r\n': 'a carriage return and newline',
}

/** A body, and the signature that does not match it. */
export interface Signed {
  readonly body: Uint8Array
  /** The bytes that should have been signed; undefined if Content-Type says form but the body is not one. */
  readonly signed: Uint8Array | undefined
  readonly signature: string | undefined
  readonly secrets: WebhookSecrets
}

/** The white space around a secret. */
interface Edges {
  readonly start: string
  readonly end: string
}

/**
 * Detects white space at either end of the secret that only one side has. Undefined if that is not the reason. Hashes
 * `signed` at most 30 times per secret.
 */
export function explainSecret({ body, signed = body, signature, secrets }: Signed): Invalid | undefined {
  for (const [secret, reason] of likelySecrets(secrets))
    if (verify(signature, signed, { current: secret })) return reason
  return undefined
}

/** The secrets with other white space at their ends, and the reason if the sender has that one. */
export function* likelySecrets({
  current,
  previous = current,
}: WebhookSecrets): Generator<readonly [Secret, Invalid]> {
  for (const secret of new Set([current, previous])) {
    const text = secret.reveal()
    const bare = text.trim()
    const own = { start: text.slice(0, text.indexOf(bare)), end: text.slice(text.trimEnd().length) }
    for (const edges of bare === '' ? [] : otherEdges(own))
      yield [new Secret(`${edges.start}${bare}${edges.end}`), invalid('secret_white_space', hint(own, edges))]
  }
}

/** All other combinations. The smallest changes come first. */
function otherEdges(own: Edges): readonly Edges[] {
  const starts = [...new Set([own.start, ...STARTS])]
  const ends = [...new Set([own.end, ...ENDS])]
  return starts.flatMap((start) => ends.map((end) => ({ start, end }))).slice(1)
}

function hint(own: Edges, sender: Edges): string {
  const added = [
    ...(sender.start !== own.start && sender.start !== '' ? [`begins with ${NAMES[sender.start]}`] : []),
    ...(sender.end !== own.end && sender.end !== '' ? [`ends in ${NAMES[sender.end]}`] : []),
  ]
  if (added.length > 0) return `the sender's secret ${added.join(' and ')}, relay's does not`
  const sides = [...(sender.start === own.start ? [] : ['start']), ...(sender.end === own.end ? [] : ['end'])]
  return `relay's secret has white space at its ${sides.join(' and ')}, the sender's does not`
}
