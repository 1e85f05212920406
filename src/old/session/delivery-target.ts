import { z } from 'zod'
import { RelayError } from '../../base/errors.js'
import { printable } from '../../base/printable.js'
import { formatTarget, parseTarget, type Target } from './target.js'

/** A delivery that names the target of an action. */
export interface NamedDelivery {
  /** For messages: `#7 (issues)`. */
  readonly name: string
  readonly event: string
  /** The JSON value of its body. */
  readonly payload: unknown
}

const page = z.object({ html_url: z.string() })
const repository = z.object({ id: z.int(), html_url: z.string() })
const ofIssue = z.object({ pull_request: page.optional(), issue: page.optional() })
/** GitHub's events about a commit name the pull requests that it is the head of, also those of other repositories. */
const listing = z.object({
  pull_requests: z.array(z.object({ number: z.int(), base: z.object({ repo: z.object({ id: z.int() }) }) })),
})
const ofCommit = z.object({
  repository,
  check_suite: listing.optional(),
  check_run: listing.optional(),
  workflow_run: listing.optional(),
})
const LISTING_EVENTS = ['check_suite', 'check_run', 'workflow_run'] as const

/**
 * The issue or pull request that a delivery is about: the one that its payload names, or the only pull request of a check suite, a
 * check run or a workflow run.
 * @throws RelayError `no_match` when it names none, or several.
 */
export function targetOfDelivery(delivery: NamedDelivery): Target {
  const { pull_request, issue } = ofIssue.safeParse(delivery.payload).data ?? {}
  const address = (pull_request ?? issue)?.html_url
  if (address !== undefined) return toTarget(address, delivery)
  const pulls = listedPulls(delivery)
  const [first, ...others] = pulls ?? []
  if (first !== undefined && others.length === 0) return toTarget(first, delivery)
  throw noTarget(
    delivery,
    pulls?.map((pull) => toTarget(pull, delivery)),
  )
}

/** The addresses of the pull requests that the event lists; undefined for an event that lists none by its kind. */
function listedPulls({ event, payload }: NamedDelivery): string[] | undefined {
  const kind = LISTING_EVENTS.find((known) => known === event)
  const { data } = ofCommit.safeParse(payload)
  const list = kind && data?.[kind]
  if (!list) return undefined
  const { id, html_url } = data.repository
  const own = list.pull_requests.filter(({ base }) => base.repo.id === id)
  return [...new Set(own.map(({ number }) => `${html_url}/pull/${number}`))]
}

function toTarget(address: string, { name }: NamedDelivery): Target {
  try {
    return parseTarget(address)
  } catch (cause) {
    throw new RelayError('no_match', `${upper(name)} has no address of an issue or pull request`, { cause })
  }
}

function noTarget({ name }: NamedDelivery, pulls: readonly Target[] | undefined): RelayError {
  const which =
    pulls === undefined
      ? 'is about no issue or pull request. Give the target, for example octo/demo#12'
      : pulls.length === 0
        ? 'names no pull request. GitHub names none if its branch is in a fork. Give the target, for example octo/demo#12'
        : `names several pull requests: ${pulls.map(formatTarget).join(', ')}. Give one of them`
  return new RelayError('no_match', `${upper(name)} ${which}`)
}

function upper(name: string): string {
  return printable(name.charAt(0).toUpperCase() + name.slice(1))
}
