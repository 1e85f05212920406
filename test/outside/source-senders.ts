import { SECRET, secretVariable } from '../kit/delivery.js'
import type { Env } from '../kit/folder.js'

/** A source of the tests: its name, its scheme, its secret, and what it sends. */
export interface Sender {
  readonly name: string
  readonly scheme: string
  readonly secret: string
  /** What `relay trigger` is asked for. */
  readonly trigger: readonly string[]
  /** The event as the journal has it. */
  readonly event: string
  /** Whether its signature covers a time, so that it is too old an hour later. */
  readonly isTimed: boolean
  /** Whether a token proves it, which is never stored. */
  readonly isToken: boolean
}

/** Those that prove something. */
export const isProved = ({ secret }: Sender): boolean => secret !== ''

const STANDARD = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'
const SIGNING_TOKEN = `whsec_${Buffer.alloc(32, 7).toString('base64')}`
const BODY = '{"id": 7,  "big": 12345678901234567890, "type": "made"}\n'
const own = ['--body', '-']

function sender(scheme: string, event: string, isTimed: boolean, more: Partial<Sender> = {}): Sender {
  const name = scheme.split(' ', 1).join('')
  return { name, scheme, secret: SECRET, trigger: [event], event, isTimed, isToken: false, ...more }
}

/** One of each scheme. */
export const SENDERS: readonly Sender[] = [
  sender('standard', 'user.created', true, { secret: STANDARD }),
  sender('stripe', 'invoice.paid', true),
  sender('stripe', 'checkout.session.completed', true, { name: 'billing' }),
  sender('slack', 'app_mention', true),
  sender('slack', 'deploy', true, { name: 'slash' }),
  sender('gitlab', 'Merge Request Hook.open', true, { secret: SIGNING_TOKEN }),
  sender('gitlab', 'Push Hook', false, { name: 'old-gitlab', isToken: true }),
  sender('linear', 'Issue.create', true, { trigger: ['Issue'] }),
  sender('shopify', 'orders/create', false),
  sender('bitbucket', 'pullrequest:created', false),
  sender('bitbucket', 'jira:issue_updated', false, { name: 'jira' }),
  sender('sentry', 'issue.created', false),
  sender('pagerduty', 'incident.triggered', false),
  sender('github', 'issues.opened', false, { name: 'second' }),
  sender('hmac header=X-Signature prefix=sha256= event=X-Event id=X-Id time=X-Time', 'made.up', true, {
    trigger: ['made.up', ...own],
  }),
  sender('token header=X-Token event=$.type', 'made', false, { trigger: own, isToken: true }),
  sender('none event=$.type', 'made', false, { name: 'open', trigger: own, secret: '' }),
]

/** What `relay trigger` reads where it is asked for a body. */
export const STDIN = BODY

/** The variables that set all of them. */
export const SENDERS_ENV: Env = Object.fromEntries([
  ['RELAY_SOURCES', SENDERS.map(({ name, scheme }) => `${name}=${scheme}`).join('\n')],
  ...SENDERS.filter(({ secret }) => secret !== '').map(({ name, secret }) => [secretVariable(name), secret]),
])
