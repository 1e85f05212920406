import { Hono } from 'hono'
import { html } from 'hono/html'
import { anywhere, type Command } from '../base/command-line.js'
import { type SignInFailureReason, SIGN_IN_FAILURE_REASONS } from '../auth/sign-in.js'
import type { HttpEnv } from '../http/body.js'
import { htmlPage, type Page } from '../http/html.js'

/** Path of the inspector's first page. */
export const INSPECT_PATH = '/inspect/'

/** Content of a page. Fixed text only: the query selects a page, and none of its text is shown. */
interface Outcome<Next = string> {
  readonly state: 'good' | 'bad' | 'idle'
  readonly title: string
  readonly text: string
  readonly next: Next
}

/** Content whose advice is completed with the commands of a profile. */
type Advice = Outcome<(command: Command) => string>

const RUNNING: Advice = {
  state: 'idle',
  title: 'relay is running',
  text: 'This address receives webhooks and signs users in.',
  next: (command) =>
    `Run ${command('login')} in a terminal to sign in, and ${anywhere('--help')} to see what else it does.`,
}

const SIGNED_IN: Advice = {
  state: 'good',
  title: 'You are signed in',
  text: 'relay has stored your access token and can act for you at the code host.',
  next: () => 'Close this page and go back to your terminal.',
}

/** Reasons why a sign-in failed, with advice. `unknown` is for any other reason. */
const FAILURES: Readonly<Record<SignInFailureReason | 'unknown', Pick<Advice, 'text' | 'next'>>> = {
  invalid_state: {
    text: 'This sign-in had expired, was used before, or began in another browser.',
    next: (command) =>
      `Run ${command('login')} again. Finish within 10 minutes, in the browser in which it began.`,
  },
  access_denied: {
    text: 'The code host reports that access was not granted.',
    next: (command) => `To sign in after all, run ${command('login')} again and choose Authorize.`,
  },
  provider_unavailable: {
    text: 'The code host could not be reached, or did not answer as it should.',
    next: (command) =>
      `Wait a minute, then run ${command('login')} again. ${command('doctor')} checks the connection.`,
  },
  exchange_failed: {
    text: 'The code host did not give relay an access token.',
    next: (command) =>
      `Run ${command('doctor')}: it checks the client id, the client secret and the callback address.`,
  },
  storage_failed: {
    text: 'relay could not store your access token.',
    next: (command) =>
      `Look at the output of relay. Free disk space or unlock your keychain, then run ${command('login')} again.`,
  },
  unknown: {
    text: 'Signing in did not succeed.',
    next: (command) => `Run ${command('login')} again. The output of relay has the reason.`,
  },
}

/** GET /: the page after signing in. Each outcome has one fixed page, so that a link cannot put its own text there. */
export function homeRoutes({
  places,
  command,
}: {
  readonly places: () => Places
  readonly command: Command
}) {
  return new Hono<HttpEnv>().get('/', (c) => {
    const outcome = outcomeOf(c.req.queries())
    const shown = outcome === RUNNING ? places() : {}
    return htmlPage(pageOf({ ...outcome, next: outcome.next(command) }, shown))
  })
}

/** Addresses on the page of a running relay. */
interface Places {
  /** Where a code host sends deliveries. Undefined if they come through a tunnel. */
  readonly payloadUrl?: string | undefined
  /** The web site of the sandbox. */
  readonly sandboxUrl?: string
  readonly hasInspector?: boolean
}

function outcomeOf({ auth = [], reason = [] }: Record<string, string[]>): Advice {
  if (auth.join() === 'success') return SIGNED_IN
  if (auth.join() !== 'error') return RUNNING
  const known = SIGN_IN_FAILURE_REASONS.find((each) => each === reason.join()) ?? 'unknown'
  return { state: 'bad', title: 'You are not signed in', ...FAILURES[known] }
}

const SIGNS = { good: '✓', bad: '!', idle: 'r' } as const

function pageOf(
  { state, title, text, next }: Outcome,
  { payloadUrl, sandboxUrl, hasInspector = false }: Places,
): Page {
  return {
    title: `${title} · relay`,
    style: STYLE,
    body: html`<main class="narrow card center">
      <p class="sign ${state}" aria-hidden="true">${SIGNS[state]}</p>
      <h1>${title}</h1>
      <p>${text}</p>
      ${payloadUrl === undefined ? '' : html`<p>Payload URL of a webhook: <code>${payloadUrl}</code></p>`}
      ${hasInspector ? html`<p><a href="${INSPECT_PATH}">Open the inspector</a></p>` : ''}
      ${sandboxUrl === undefined ? '' : html`<p><a href="${sandboxUrl}">Open the sandbox</a></p>`}
      <p class="soft">${next}</p>
    </main>`,
  }
}

const STYLE = `
body { margin-top: 14vh }
code { overflow-wrap: anywhere }
a { color: var(--link) }
.sign { width: 3.5rem; height: 3.5rem; margin: 0 auto 1rem; border-radius: 50%; display: grid; place-items: center; color: #fff; font-size: 1.6rem; font-weight: 600 }
.good { background: var(--go) }
.bad { background: var(--stop) }
.idle { background: var(--idle) }
`
