import { readdirSync } from 'node:fs'
import path from 'node:path'
import { expect, type ExpectStatic, it } from 'vitest'
import { githubDelivery, post } from '../kit/delivery.js'
import type { Env } from '../kit/folder.js'
import { type Filled, fill, NOW } from '../kit/journal.js'
import { describeWith } from '../kit/needs.js'
import { Pane } from '../kit/pane.js'
import { type Place, place } from '../kit/place.js'
import { closedPort } from '../kit/ports.js'
import { receiver } from '../kit/receiver.js'

const WIDTHS = [60, 80, 120]
const HEIGHT = 100

/** Replaces what differs from run to run by something of the same width, as far as that is known. */
function stable(text: string): string {
  return (
    text
      .replaceAll(/\b\d\d:\d\d:\d\d\b/g, 'HH:MM:SS')
      .replaceAll(/\b(?:\d+ms|\d+\.\ds)\b/g, 'TIME')
      .replaceAll(/\b\d+ days ago/g, 'AGE ago')
      .replaceAll(/127\.0\.0\.1:\d{4,5}/g, '127.0.0.1:PORT')
      .replaceAll(/relay-\w{6}\/test-\w{6}/g, 'relay-XXXXXX/test-XXXXXX')
      .replaceAll(/Port \d+ is free/g, 'Port NUMBER is free')
      // What waits when a key is pressed depends on when relay tried last.
      .replaceAll(/^(?:Trying again now: .*|Nothing to try again)\n/gm, '')
      .replaceAll(/[\d,]+ MiB/g, 'N MiB')
      // Which file system it is decides where the line breaks.
      .replaceAll(
        /only you can read(\s+)(\S+)\s\([^)]*\);\s+N MiB\s+free/g,
        'only you can read$1$2; N MiB free',
      )
      .replaceAll(/Node \d+\.\d+\.\d+/g, 'Node VERSION')
      .replaceAll(/relay \d+\.\d+\.\d+/g, 'relay VERSION')
  )
}

/** What a terminal shows, after it was seen that it broke no line. */
function shownBy(pane: Pane): string {
  const text = pane.text()
  expect(pane.unbroken()).toBe(text)
  return stable(text)
}

/** Compares what terminals of each width show with a golden file. */
async function compare(
  expect: ExpectStatic,
  name: string,
  shown: readonly string[],
  widths = WIDTHS,
): Promise<void> {
  const all = widths.map((width, i) => `${width} columns\n\n${shown[i]}`).join('\n')
  await expect(all).toMatchFileSnapshot(path.resolve('test/process/golden', `${name}.txt`))
}

/** Runs commands in terminals of each width; what they show at the end. */
function inTerminals(script: string, env: Env, read = shownBy, widths = WIDTHS): Promise<string[]> {
  return Promise.all(
    widths.map(async (width) => {
      await using pane = new Pane(script, { width, height: HEIGHT, env })
      await pane.ended()
      return read(pane)
    }),
  )
}

/** What a terminal shows of a payload, whose lines it broke itself: relay leaves them whole. */
function payloadShownBy(pane: Pane): string {
  const whole = JSON.stringify(PAYLOAD, null, 2).replaceAll(/^/gm, '  ')
  expect(pane.unbroken()).toContain(whole)
  return stable(pane.text())
}

const APP = '*=http://localhost:3000/hooks'
const API = 'pull_request=http://localhost:4000/api'
const DEPLOY = 'push=exec:./deploy.sh'
const FAILED = { status: 'failed', tries: 5 } as const

/** With a line that is longer than any terminal. */
const description = `Zeichen ${'日本語 '.repeat(30)}`
const repository = { full_name: 'octo-organization/demo-repository', description }
const PAYLOAD = { action: 'synchronize', number: 12345, draft: false, repository, assignee: null }

const RETRIED = { outcome: 'retry', status: 500, answer: 'no\n' } as const
const EXITED = { status: 1, outcome: 'refused', answer: 'tests failed\n' } as const
const DOWN = { at: NOW + 5, outcome: 'unreachable', status: null, error: 'connection refused' } as const

/** Long names, wide characters, and every state of forwarding. */
const DELIVERIES: readonly Filled[] = [
  {
    id: 'a',
    number: null,
    ref: 'refs/heads/main',
    forwards: {
      [APP]: { attempts: [{}] },
      [DEPLOY]: { ...FAILED, reason: 'exit code 1', attempts: [EXITED] },
    },
  },
  {
    id: 'b',
    event: 'pull_request',
    action: 'synchronize',
    repo: 'octo-organization/demo-repository',
    number: 12_345,
    receivedAt: NOW + 60_000,
    duplicates: 1,
    headers: [
      ['Content-Type', 'application/json'],
      ['X-GitHub-Event', 'pull_request'],
    ],
    body: JSON.stringify(PAYLOAD),
    forwards: {
      [APP]: { attempts: [{ at: NOW + 5, ms: 1234 }] },
      [API]: {
        ...FAILED,
        reason: 'answered 500 five times',
        attempts: Array.from({ length: 5 }, (_, i) => ({ ...RETRIED, at: NOW + i })),
      },
    },
  },
  {
    id: 'c',
    event: 'issues',
    action: 'opened',
    repo: '日本語/言語 🎉',
    receivedAt: NOW + 120_000,
    forwards: { [APP]: { status: 'waiting', attempts: [DOWN] } },
  },
  { id: 'd', event: 'release', action: 'published', ref: 'v1.0', number: null, receivedAt: NOW + 180_000 },
]

/** A port, a code host and a secret that are the same for `doctor` on every machine. */
async function doctorSettings({ env }: Place): Promise<Env> {
  return {
    ...env,
    RELAY_PORT: String(await closedPort()),
    RELAY_PROVIDER: 'gitea',
    RELAY_PROVIDER_URL: `http://127.0.0.1:${await closedPort()}`,
    RELAY_WEBHOOK_SECRET: '0123456789abcdef'.repeat(4),
  }
}

/** Targets that are down, fail and are slow, what a terminal shows of them, and once the first is back. */
async function serveIn(width: number): Promise<{ readonly down: string; readonly back: string }> {
  await using api = await receiver(404)
  // Once the terminal shows what the other answered.
  let asked = 0
  await using slow = await receiver(async () => {
    await pane.shows(new RegExp(`#${++asked} {2}→ api ✗`))
    return { body: 'ok' }
  })
  const [down, port] = [await closedPort(), await closedPort()]
  const app = `http://127.0.0.1:${down}`
  const routes = `--forward app=${app}/ --forward api=${api.url}/ --forward slow=${slow.url}/`
  await using here = await place({ host: 'none' })
  const size = { width, height: HEIGHT, env: here.env }
  await using pane = new Pane(`relay serve --port ${port} ${routes}`, size)
  await pane.shows(/Press \?/)
  const url = `http://127.0.0.1:${port}/webhook`
  const repository = { full_name: 'octo/demo' }
  let sent = 0
  const send = async (event: string, payload: object): Promise<void> => {
    const body = JSON.stringify({ repository, ...payload })
    expect(await post(url, githubDelivery({ event, body }))).toMatchObject({ status: 200 })
    // It has been answered by all but the one that is down.
    await pane.shows(new RegExp(`#${++sent} {2}→ api ✗[^]*#${sent} {2}→ slow ✓`))
  }
  await send('push', { ref: 'refs/heads/main' })
  await pane.shows(/is down/)
  await send('pull_request', { action: 'synchronize', pull_request: { number: 12 } })
  await send('issue_comment', { action: 'created', issue: { number: 7 } })
  const whileDown = shownBy(pane)
  pane.press('r')
  await pane.shows(/Trying again now: 3 for app/)
  await using _app = await receiver(200, { port: down })
  pane.press('r')
  await pane.shows(/app is back: forwarding 3 deliveries[^]*#3 {2}→ app ✓/)
  pane.press('?')
  await pane.shows(/r retry/)
  const back = shownBy(pane)
  pane.press('q')
  await pane.ended()
  return { down: whileDown, back }
}

describeWith('tmux', 'relay in a terminal', () => {
  it.concurrent('serve, with targets that are down, fail and are slow', async ({ expect }) => {
    const shown = await Promise.all(WIDTHS.map(serveIn))
    for (const when of ['down', 'back'] as const) {
      const screens = shown.map((width) => width[when])
      await compare(expect, `serve-${when}`, screens)
    }
  })

  it.concurrent('log, show and doctor', async ({ expect }) => {
    await using here = await place({ host: 'none' })
    await fill(here, DELIVERIES)
    const env = { ...here.env, RELAY_FORWARD: `app=${APP.slice(2)}` }
    await compare(expect, 'log', await inTerminals('relay log; relay log -n 2', env))
    const show = await inTerminals('relay show 2', env, payloadShownBy)
    expect(show[0]).toContain('#2  pull_request.synchronize')
    await compare(expect, 'show', show)
    // How much space is free, which differs, breaks a narrower line in other places.
    const wide = WIDTHS.filter((width) => width >= 80)
    const doctor = await inTerminals('relay doctor', await doctorSettings(here), shownBy, wide)
    await compare(expect, 'doctor', doctor, wide)
  })

  it.concurrent('routes, whose addresses are to be copied', async ({ expect }) => {
    await using here = await place({ host: 'none' })
    const long = `http://localhost:3000/hooks/${'segment-'.repeat(12)}end`
    const shown = await inTerminals('relay routes', { ...here.env, RELAY_FORWARD: `app=${long}` }, (pane) => {
      expect(pane.unbroken()).toContain(long)
      return stable(pane.text())
    })
    await compare(expect, 'routes', shown)
  })

  it.concurrent('replay', async ({ expect }) => {
    await using target = await receiver(({ headers }) =>
      headers.some(([name, value]) => name.toLowerCase() === 'x-github-event' && value === 'issues')
        ? { status: 422, body: { error: 'This target does not take issues, whatever happens to them' } }
        : 200,
    )
    const files = readdirSync('fixtures/github')
      .slice(0, 40)
      .map((file) => `fixtures/github/${file}`)
    await using here = await place({ host: 'none' })
    const shown = await inTerminals(`relay replay ${files.join(' ')} --to ${target.url}`, here.env)
    expect(shown[0]).toContain('6 of 40 answers were not as expected')
    await compare(expect, 'replay', shown)
  })

  it('opens a pager for what is longer than the screen, and leaves the terminal as it was', async () => {
    await using here = await place({ host: 'none' })
    const relay = await here.serve()
    const repository = { full_name: 'octo/demo' }
    const body = JSON.stringify({ action: 'synchronize', repository, pull_request: { number: 12 } }, null, 1)
    await relay.deliver({ event: 'pull_request', body })
    await relay.stop()
    await using pane = new Pane('PAGER="head -n 3" relay show 1', { width: 80, height: 12, env: here.env })
    await pane.ended()
    expect(pane.text().split('\n').filter(Boolean)).toEqual([
      '#1  pull_request.synchronize  octo/demo#12',
      expect.stringMatching(/^received /),
    ])
  })
})
