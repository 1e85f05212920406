import { createServer } from 'node:http'
import { readdirSync } from 'node:fs'
import path from 'node:path'
import { expect, type ExpectStatic, it } from 'vitest'
import type { Journal } from '../../src/journal/journal.js'
import { fill } from '../cli/journal-rig.js'
import { emptyFolder } from '../helpers/context.js'
import { githubDelivery, post, SECRET } from '../helpers/delivery.js'
import { describeWith } from '../helpers/needs.js'
import { Pane } from '../helpers/pane.js'
import { closedPort, scriptedServer } from '../helpers/scripted-server.js'
import { attempt, delivery, failed, NOW, succeeded, waiting } from '../journal/rig.js'

const WIDTHS = [60, 80, 120, 200]
const HEIGHT = 100
const FOLDER = path.resolve('test/golden')

/** The text with what differs from run to run replaced by something of the same width, as far as that is known. */
function stable(text: string): string {
  return (
    text
      .replaceAll(/\b\d\d:\d\d:\d\d\b/g, 'HH:MM:SS')
      .replaceAll(/\b(?:\d+ms|\d+\.\ds)\b/g, 'TIME')
      .replaceAll(/\b\d+ days ago/g, 'AGE ago')
      .replaceAll(/127\.0\.0\.1:\d{4,5}/g, '127.0.0.1:PORT')
      .replaceAll(/relay-\w{6}\/test-\w{6}/g, 'relay-XXXXXX/test-XXXXXX')
      .replaceAll(/port( +)\d+ is free/g, 'port$1PORT is free')
      // What waits when a key is pressed depends on when relay tried last.
      .replaceAll(/^(?:Trying again now: .*|Nothing is waiting)\n/gm, '')
      .replaceAll(/[\d,]+ MiB/g, 'N MiB')
      .replaceAll(/Node \d+\.\d+\.\d+/g, 'Node VERSION')
      .replaceAll(/relay \d+\.\d+\.\d+/g, 'relay VERSION')
  )
}

/** Compares what a terminal shows with a golden file, and sees that the terminal broke no line. */
async function compare(expect: ExpectStatic, pane: Pane, name: string, width: number): Promise<void> {
  const text = pane.text()
  expect(pane.unbroken()).toBe(text)
  await expect(stable(text)).toMatchFileSnapshot(path.join(FOLDER, `${name}-${width}.txt`))
}

/** Answers each request after a third of a second: a time of three digits. */
async function slowServer() {
  const server = createServer((incoming, outgoing) => {
    incoming.resume().on('end', () => setTimeout(() => outgoing.end('ok'), 330))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  const port = typeof address === 'object' && address ? address.port : 0
  return {
    url: `http://127.0.0.1:${port}`,
    async [Symbol.asyncDispose]() {
      await new Promise((resolve) => server.close(resolve).closeAllConnections())
    },
  }
}

const APP = '*=http://localhost:3000/hooks'
const API = 'pull_request=http://localhost:4000/api'
const DEPLOY = 'push=exec:./deploy.sh'

/** A journal with long names, wide characters, and every state of forwarding. */
async function fillJournal(home: string): Promise<void> {
  const at = (minutes: number) => ({ receivedAt: NOW + minutes * 60_000 })
  const named = { event: 'pull_request', action: 'synchronize', repo: 'octo-organization/demo-repository' }
  const write = (work: (journal: Journal) => Promise<void>, targets: readonly string[]) =>
    fill({ home }, work, targets)
  await write(
    async (journal) => {
      await journal.append(delivery('a', { number: null, ref: 'refs/heads/main', ...at(0) }))
      await journal.record(1, attempt(APP), succeeded)
      const output = { status: 1, outcome: 'refused', answer: Buffer.from('tests failed\n') } as const
      await journal.record(1, attempt(DEPLOY, output), { ...failed, reason: 'exit code 1' })
    },
    [APP, DEPLOY],
  )
  await write(
    async (journal) => {
      const body = JSON.stringify({
        action: 'synchronize',
        number: 12345,
        draft: false,
        repository: { full_name: named.repo, description: `Zeichen ${'日本語 '.repeat(30)}` },
        assignee: null,
      })
      await journal.append(
        delivery('b', {
          ...named,
          number: 12_345,
          ...at(1),
          body: Buffer.from(body),
          headers: [
            ['Content-Type', 'application/json'],
            ['X-GitHub-Event', 'pull_request'],
          ],
        }),
      )
      await journal.record(2, attempt(APP, { ms: 1234 }), succeeded)
      const refused = { outcome: 'retry', status: 500, answer: Buffer.from('no\n') } as const
      for (let i = 0; i < 5; i++) await journal.record(2, attempt(API, { ...refused, at: NOW + i }), failed)
      await journal.append(delivery('b', named))
    },
    [APP, API],
  )
  await write(
    async (journal) => {
      await journal.append(
        delivery('c', { event: 'issues', action: 'opened', repo: '日本語/言語 🎉', ...at(2) }),
      )
      const down = { outcome: 'unreachable', status: null, error: 'connection refused' } as const
      await journal.record(3, attempt(APP, down), waiting)
    },
    [APP],
  )
  await write(async (journal) => {
    await journal.append(
      delivery('d', { event: 'release', action: 'published', ref: 'v1.0', number: null, ...at(3) }),
    )
  }, [])
}

/** A port, a code host and a secret that are the same for `doctor` on every machine. */
async function doctorSettings(home: string): Promise<Record<string, string>> {
  return {
    RELAY_HOME: home,
    RELAY_USER: 'ada',
    RELAY_PORT: String(await closedPort()),
    RELAY_PROVIDER: 'gitea',
    RELAY_PROVIDER_URL: `http://127.0.0.1:${await closedPort()}`,
    RELAY_WEBHOOK_SECRET: '0123456789abcdef'.repeat(4),
  }
}

describeWith('tmux', 'relay in a terminal', () => {
  it.concurrent.for(WIDTHS)(
    '%d columns: serve, with targets that are down, fail and are slow',
    async (width, { expect }) => {
      await using api = await scriptedServer(() => ({ status: 404 }))
      await using slow = await slowServer()
      const down = await closedPort()
      const port = await closedPort()
      const routes = `--forward app=http://127.0.0.1:${down}/ --forward api=${api.url}/ --forward slow=${slow.url}/`
      using pane = new Pane(`relay serve --port ${port} ${routes}`, {
        width,
        height: HEIGHT,
        env: { RELAY_HOME: emptyFolder(), RELAY_WEBHOOK_SECRET: SECRET },
      })
      await pane.shows(/Press \?/)
      const url = `http://127.0.0.1:${port}/webhook`
      const repository = { full_name: 'octo/demo' }
      const send = async (event: string, payload: object): Promise<void> => {
        const body = JSON.stringify({ repository, ...payload })
        expect(await post(url, githubDelivery({ event, body }))).toMatchObject({ status: 200 })
      }
      await send('push', { ref: 'refs/heads/main' })
      await pane.shows(/is down/)
      await send('pull_request', { action: 'synchronize', pull_request: { number: 12 } })
      await send('issue_comment', { action: 'created', issue: { number: 7 } })
      // The last one has been answered by all but the one that is down.
      await pane.shows(/#3 .*✗.*slow ✓|#3 .*✗.*1 ✓/)
      await compare(expect, pane, 'serve-down', width)
      pane.press('r')
      await pane.shows(/Trying again now: 3 for app/)
      await using _app = await scriptedServer(() => ({ status: 200 }), down)
      pane.press('r')
      await pane.shows(/app is back: forwarded 3 deliveries/)
      pane.press('?')
      await pane.shows(/r retry/)
      await compare(expect, pane, 'serve-back', width)
      pane.press('q')
      await pane.ended()
    },
  )

  it.concurrent.for(WIDTHS)('%d columns: log, show and doctor', async (width, { expect }) => {
    const home = emptyFolder()
    await fillJournal(home)
    const env = { RELAY_HOME: home, RELAY_FORWARD: `app=${APP.slice(2)}` }
    const options = { width, height: HEIGHT, env }
    using log = new Pane('relay log; relay log -n 2', options)
    using show = new Pane('relay show 2', options)
    await log.ended()
    await compare(expect, log, 'log', width)
    await show.ended()
    expect(show.text()).toContain('#2  pull_request.synchronize')
    await compare(expect, show, 'show', width)
    using doctor = new Pane('relay doctor', { ...options, env: await doctorSettings(home) })
    await doctor.ended()
    await compare(expect, doctor, 'doctor', width)
  })

  it.concurrent.for(WIDTHS)('%d columns: replay', async (width, { expect }) => {
    await using target = await scriptedServer(({ headers }) =>
      headers['x-github-event'] === 'issues'
        ? { status: 422, body: { error: 'This target does not take issues, whatever happens to them' } }
        : { status: 200 },
    )
    const files = readdirSync('fixtures/github')
      .slice(0, 40)
      .map((file) => `fixtures/github/${file}`)
    using pane = new Pane(`relay replay ${files.join(' ')} --to ${target.url}`, {
      width,
      height: HEIGHT,
      env: { RELAY_HOME: emptyFolder(), RELAY_WEBHOOK_SECRET: SECRET },
    })
    await pane.ended()
    expect(pane.text()).toContain('6 of 40 answers were not as expected')
    await compare(expect, pane, 'replay', width)
  })

  it('opens a pager for what is longer than the screen, and leaves the terminal as it was', async () => {
    const home = emptyFolder()
    await fillJournal(home)
    using pane = new Pane('PAGER="head -n 3" relay show 2', {
      width: 80,
      height: 12,
      env: { RELAY_HOME: home },
    })
    await pane.ended()
    expect(pane.text().split('\n').filter(Boolean)).toEqual([
      '#2  pull_request.synchronize  octo-organization/demo-repository#12345',
      expect.stringMatching(/^received /),
    ])
  })
})
