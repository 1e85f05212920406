import { RelayError } from '../base/errors.js'
import { parseJson } from '../json/parse.js'
import type { Delivery } from '../journal/types.js'
import { ownMember } from '../providers/event-table.js'
import type { WebhookScheme } from '../providers/provider.js'

/** Longer than any action and any `owner/name` that GitHub or Gitea allow. Longer text is ignored. */
const MAX_LENGTH = 256
/** `refs/heads/` and a name of 255 bytes, GitHub's limit. */
const MAX_REF_LENGTH = 'refs/heads/'.length + 255

/**
 * The fields of a payload that listings show: action, repository, issue or pull-request number, and branch or tag. For
 * a fork event, the repository is the one that was forked. The payload may be any JSON value; a field without a
 * usable value is null, or left out in the case of `ref`.
 */
export function summarize(
  payload: unknown,
  { forked }: Pick<WebhookScheme, 'forked'>,
): Pick<Delivery, 'action' | 'repo' | 'number' | 'ref'> {
  const field = (...path: readonly string[]): unknown => path.reduce(ownMember, payload)
  const ref = name(field('ref'), MAX_REF_LENGTH) ?? name(field('release', 'tag_name'))
  return {
    action: name(field('action')),
    repo: name(field(forked, 'full_name')) ?? name(field('repository', 'full_name')),
    number:
      count(field('number')) ?? count(field('issue', 'number')) ?? count(field('pull_request', 'number')),
    ...(ref !== null && { ref }),
  }
}

/**
 * The JSON value of a payload.
 * @throws RelayError `invalid_event` if {@link parseJson} rejects it.
 */
export function parsePayload(payload: Uint8Array): unknown {
  try {
    return parseJson(payload)
  } catch (error) {
    const why = error instanceof SyntaxError ? error.message : 'not JSON'
    throw new RelayError('invalid_event', 'Invalid event', { cause: new Error(`the body is ${why}`) })
  }
}

function name(value: unknown, maxLength = MAX_LENGTH): string | null {
  const isName = typeof value === 'string' && value.length > 0 && value.length <= maxLength
  return isName && !/[\p{Cc}\p{Cs}]/u.test(value) ? value : null
}

function count(value: unknown): number | null {
  return typeof value === 'number' && Number.isSafeInteger(value) && value > 0 ? value : null
}
