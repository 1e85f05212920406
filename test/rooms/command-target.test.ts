import { existsSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { openCommandTarget } from '../../src/dispatch/command-target.js'
import type { DeliveryResult } from '../../src/dispatch/target.js'
import type { Entry } from '../../src/journal/types.js'
import { emptyFolder } from '../kit/folder.js'
import { isAlive } from '../kit/processes.js'

/** An entry of the journal, as targets get it. */
function entryOf(over: Partial<Entry> = {}): Entry {
  const summary = { event: 'issues', action: 'opened', repo: 'octo/demo', number: 7, deliveryId: '72d3162e' }
  const rest = {
    n: 1,
    receivedAt: 0,
    provider: 'github',
    hookId: '42',
    verifiedBy: 'current',
    duplicates: 0,
  } as const
  return { ...summary, ...rest, headers: [], body: Buffer.from('{}'), ...over }
}

const { signal: never } = new AbortController()
const env = { PATH: process.env['PATH'] }

interface RunOptions {
  readonly entry?: Entry
  readonly env?: Record<string, string | undefined>
  readonly limit?: number
  readonly grace?: number
  readonly signal?: AbortSignal
}

async function run(command: string, options: RunOptions = {}): Promise<DeliveryResult> {
  const { entry = entryOf(), limit = 10_000, grace = 5000, signal = never } = options
  await using target = openCommandTarget(command, { env: options.env ?? env, limit, grace })
  return await target.deliver(entry, 1, { signal })
}

function shown({ outcome, status, answer, error }: DeliveryResult) {
  return { outcome, status, output: Buffer.from(answer).toString(), error }
}

/** The process ids that a command wrote to a file, one a line. */
const pidsIn = (file: string): number[] => readFileSync(file, 'utf8').trim().split('\n').map(Number)

describe('a command', () => {
  it('is run as it is written, whatever the delivery says', async () => {
    const entry = entryOf({
      event: '$(touch x)',
      action: '`id`',
      repo: "'; exit 3; '",
      deliveryId: '"; exit 4',
    })
    const command = `printf '%s|' "$RELAY_EVENT" "$RELAY_ACTION" "$RELAY_REPO" "$RELAY_DELIVERY" "$0" "$#"`
    expect(shown(await run(command, { entry }))).toMatchObject({
      outcome: 'succeeded',
      output: `$(touch x)|\`id\`|'; exit 3; '|"; exit 4|/bin/sh|0|`,
    })
  })

  it.each([
    ['exit 1', { outcome: 'refused', status: 1, error: 'exit code 1' }],
    ['exit 75', { outcome: 'retry', status: 75, error: 'exit code 75' }],
    ['no-such-program 2>/dev/null', { outcome: 'refused', status: 127, error: 'exit code 127' }],
    ['kill -SEGV $$', { outcome: 'retry', status: null, error: 'ended by SIGSEGV' }],
  ])('that ends with %s', async (command, result) => {
    expect(await run(command)).toMatchObject(result)
  })

  it('has ended when its shell has, whatever is left in the background', async () => {
    const file = path.join(emptyFolder(), 'pid')
    const before = performance.now()
    const result = await run(`sleep 60 & echo $! > ${file}; echo done`)
    expect(shown(result)).toMatchObject({ outcome: 'succeeded', output: 'done\n' })
    expect(performance.now() - before).toBeLessThan(5000)
    const [pid = 0] = pidsIn(file)
    expect(isAlive(pid)).toBe(true)
    process.kill(pid)
  })
})

describe('a command that takes too long', () => {
  /** A shell with a child and a grandchild, whose ids it writes down. */
  const family = (file: string, first = ''): string =>
    `${first} echo begun; (sh -c '${first} echo $$ >> ${file}; sleep 60; :' & echo $$ >> ${file}; wait); :`

  it('is ended with all it has started, and what it printed is stored', async () => {
    const file = path.join(emptyFolder(), 'pids')
    const result = await run(family(file), { limit: 500 })
    expect(shown(result)).toEqual({
      outcome: 'timed out',
      status: null,
      output: 'begun\n',
      error: 'still running after 0.5 s',
    })
    const pids = pidsIn(file)
    expect(pids).toHaveLength(2)
    expect(pids.filter(isAlive)).toEqual([])
  })

  it('is made to end when it does not want to, not before the grace', async () => {
    const file = path.join(emptyFolder(), 'pids')
    const before = performance.now()
    const result = await run(family(file, 'trap "" TERM;'), { limit: 300, grace: 400 })
    const took = performance.now() - before
    expect(result.outcome).toBe('timed out')
    expect(took).toBeGreaterThan(690)
    expect(took).toBeLessThan(3000)
    const pids = pidsIn(file)
    expect(pids).toHaveLength(2)
    await expect.poll(() => pids.filter(isAlive)).toEqual([])
  })

  it('is ended when relay stops', async () => {
    const file = path.join(emptyFolder(), 'pids')
    const stop = new AbortController()
    const running = run(family(file), { signal: stop.signal })
    await expect.poll(() => (existsSync(file) ? pidsIn(file) : [])).toHaveLength(2)
    const pids = pidsIn(file)
    const before = performance.now()
    stop.abort()
    expect(shown(await running)).toEqual({
      outcome: 'killed',
      status: null,
      output: 'begun\n',
      error: 'relay was stopped',
    })
    expect(performance.now() - before).toBeLessThan(2000)
    expect(pids.filter(isAlive)).toEqual([])
  })
})

describe('the environment of a command', () => {
  /** What a command finds there, but for what its shell adds. */
  async function environment(env: Record<string, string>, entry: Partial<Entry>) {
    const { output } = shown(await run('tr "\\0" "\\n" < /proc/self/environ', { env, entry: entryOf(entry) }))
    return output
      .split('\n')
      .filter((line) => !/^(?:PWD|OLDPWD|SHLVL|_)=|^$/.test(line))
      .toSorted()
  }

  it("is relay's without its secrets, and the delivery, whatever it had of that", async () => {
    const secrets = [
      'CLIENT_SECRET',
      'WEBHOOK_SECRET',
      'WEBHOOK_SECRET_PREVIOUS',
      'TOKEN_KEY',
      'STORE',
    ].flatMap((name) => [
      [`RELAY_${name}`, 'secret'],
      [`RELAY_${name}_FILE`, '/run/secret'],
    ])
    const own = {
      PATH: env.PATH ?? '',
      RELAY_PROFILE: 'sandbox',
      RELAY_ACTION: 'old',
      RELAY_FORWARD: 'http://a:b@c',
    }
    expect(
      await environment({ ...own, ...Object.fromEntries(secrets) }, { action: null, repo: null }),
    ).toEqual([
      `PATH=${env.PATH}`,
      'RELAY_ACTION=',
      'RELAY_DELIVERY=72d3162e',
      'RELAY_EVENT=issues',
      'RELAY_PROFILE=sandbox',
      'RELAY_REPO=',
    ])
  })

  it.each([
    ['a\0b\nc\u007fd\u0085e\x1b[31m', 'abcde[31m'],
    ['x'.repeat(2000), 'x'.repeat(1024)],
    [`${'x'.repeat(1022)}\u20ac`, 'x'.repeat(1022)],
    [`${'x'.repeat(1020)}\u{1f600}`, `${'x'.repeat(1020)}\u{1f600}`],
  ])(
    'has no control characters of a delivery, and at most 1 KiB, to the end of a character: %#',
    async (repo, found) => {
      expect(await environment({ PATH: env.PATH ?? '' }, { repo })).toContain(`RELAY_REPO=${found}`)
    },
  )
})
