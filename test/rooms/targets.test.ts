import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { createServer as createHttpServer } from 'node:http'
import { createServer, type Socket } from 'node:net'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { openCommandTarget } from '../../src/dispatch/command-target.js'
import { openHttpTarget } from '../../src/dispatch/http-target.js'
import type { DeliveryResult, OpenTarget } from '../../src/dispatch/target.js'
import type { Delivery, Entry } from '../../src/journal/types.js'
import { secretVariable } from '../../src/base/secret-variables.js'
import { SETTING_NAMES, settingOf, variablesOf } from '../../src/cli/settings/table.js'
import { emptyFolder } from '../kit/folder.js'
import { portOf } from '../kit/ports.js'
import { isAlive } from '../kit/processes.js'
import { receiver } from '../kit/receiver.js'
import { delivery } from './journal-rig.js'

const { signal: never } = new AbortController()
const env = { PATH: process.env['PATH'] ?? '' }
const entryOf = (over?: Partial<Delivery>): Entry => ({ ...delivery('72d3162e', over), n: 1, duplicates: 0 })

const open = (url: string, limit = 5000): OpenTarget => openHttpTarget(url, { clock: Date.now, limit })

/** What matters of a result, the answer as text. */
function shown({ outcome, status, answer, error }: DeliveryResult) {
  return { outcome, status, answer: Buffer.from(answer).toString(), error }
}

async function deliver(url: string, limit?: number, signal = never) {
  await using target = open(url, limit)
  return shown(await target.deliver(entryOf(), 1, { signal }))
}

interface RunOptions {
  readonly entry?: Partial<Delivery>
  readonly env?: Record<string, string>
  readonly limit?: number
  readonly grace?: number
  readonly signal?: AbortSignal
}

async function run(command: string, { entry, signal = never, ...more }: RunOptions = {}) {
  await using target = openCommandTarget(command, { env, limit: 10_000, grace: 60_000, ...more })
  return shown(await target.deliver(entryOf(entry), 1, { signal }))
}

describe('the headers that a target gets', () => {
  const dropped =
    `Host Content-Length Connection Keep-Alive TE Trailer Transfer-Encoding Upgrade Proxy-Authorization
    Proxy-Connection Authorization Cookie Expect X-Relay-Attempt`.split(/\s+/)
  const spellings = dropped.flatMap((name) => [name, name.toLowerCase(), name.toUpperCase()])
  const ordinary = Object.entries({
    Accept: '*/*',
    'x-GitHub-EVENT': 'push',
    'Content-Type': 'application/json',
    'X-Twice': 'one',
    'x-twice': 'two',
    'X-Empty': '',
    'X-Latin': 'caf\u00e9',
    'X-Tab': 'a\tb',
  })

  it.each<[string, Entry['headers']]>([
    ['of one connection, with credentials, of relay itself', spellings.map((name) => [name, 'x'])],
    [
      'named by Connection',
      Object.entries({
        Connection: 'keep-alive, X-Hop',
        connection: 'x-other',
        'X-HOP': '1',
        'X-Other': '2',
      }),
    ],
    [
      'that cannot be written',
      Object.entries({ 'X-Line': 'a\r\nX-Evil: b', 'X-Wide': '\u2603', 'X Space': 'a', '': 'a' }),
    ],
  ])('are those recorded, in order and spelling, but those %s', async (_, lines) => {
    await using server = await receiver()
    await using target = open(server.url)
    await target.deliver(entryOf({ headers: [...lines, ...ordinary] }), 3, { signal: never })
    // After Host and Connection, and before Content-Length.
    expect(server.received[0]?.headers.slice(2, -1)).toEqual([...ordinary, ['X-Relay-Attempt', '3']])
  })
})

describe('an HTTP target', () => {
  it('that never stops answering is cut off', async () => {
    let closed: Promise<unknown> | undefined
    const server = createHttpServer((request, response) => {
      closed = new Promise((resolve) => request.socket.once('close', resolve))
      const more = (): void => {
        while (response.write(Buffer.alloc(65_536, 'x')));
      }
      response.on('drain', more)
      more()
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { outcome, answer } = await deliver(`http://127.0.0.1:${portOf(server)}`)
    expect([outcome, answer.length]).toEqual(['succeeded', 4096])
    await closed
    server.close()
  })

  it('is left at once when relay stops', async () => {
    await using server = await receiver('hang')
    const stop = new AbortController()
    const delivering = deliver(server.url, 60_000, stop.signal)
    await server.has(1)
    stop.abort()
    const killed = { outcome: 'killed', status: null, answer: '', error: 'relay was stopped' }
    expect(await delivering).toEqual(killed)
    expect(await deliver(server.url, 60_000, stop.signal)).toEqual(killed)
    expect(server.received.length).toBe(1)
  })

  it('that does not take the body is given up at the limit', async () => {
    const server = createServer({ pauseOnConnect: true }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const connected = once(server, 'connection')
    await using target = open(`http://127.0.0.1:${portOf(server)}`, 200)
    const large = entryOf({ headers: [], body: Buffer.alloc(20_000_000) })
    const error = 'no answer within 0.2 s'
    const result = await target.deliver(large, 1, { signal: never })
    expect(shown(result)).toEqual({ outcome: 'timed out', status: null, answer: '', error })
    const [socket]: Socket[] = await connected
    socket?.destroy()
    server.close()
  })

  const SSH = 'SSH-2.0-OpenSSH_9.2\r\n'
  const MAIL = '220 mail.example ESMTP\r\n'
  const TLS_ALERT = '\x15\x03\x01\0\x02\x02\x46'
  const PROTOCOL = 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n'
  const LONG = `HTTP/1.1 200 OK\r\nX: ${'x'.repeat(300_000)}`

  const HTTP2 = '\0\0\x12\x04\0\0\0\0\0\0\x03\0\0\0\x80'
  const AT = 'check the address and the port'

  it.each<[string, (socket: Socket) => unknown, string, string]>([
    ['SSH, which speaks first', (socket) => socket.end(SSH), SSH, `, but SSH: ${AT}`],
    ['mail, which waits for more', (socket) => socket.write(MAIL), MAIL, `, but mail or FTP: ${AT}`],
    ['HTTP/2', (socket) => socket.end(HTTP2), HTTP2, `, but HTTP/2: ${AT}`],
    ['a database', (socket) => socket.end('-ERR unknown\r\n'), '-ERR unknown\r\n', `: ${AT}`],
    [
      'TLS',
      (socket) => socket.once('data', () => socket.end(TLS_ALERT)),
      TLS_ALERT,
      ', but TLS: set https:// in the address',
    ],
    [
      'another protocol',
      (socket) => socket.once('data', () => socket.write(PROTOCOL)),
      '',
      `, it changes to another protocol: ${AT}`,
    ],
    [
      'headers that are too long',
      (socket) => socket.once('data', () => socket.write(LONG)),
      '',
      `, its headers have more than 256 KiB: ${AT}`,
    ],
  ])('that answers in %s is not asked again', async (_, speak, answer, why) => {
    const sockets: Socket[] = []
    const server = createServer((socket) => {
      sockets.push(socket.on('error', () => {}))
      speak(socket)
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const result = await deliver(`http://127.0.0.1:${portOf(server)}`)
    const error = `its answer is not HTTP/1.1${why}`
    expect(result).toEqual({ outcome: 'refused', status: null, error, answer })
    expect(sockets.length).toBe(1)
    sockets[0]?.destroy()
    server.close()
  })
})

/** The process ids that a command wrote to a file, one a line. */
const pidsIn = (file: string): number[] => readFileSync(file, 'utf8').trim().split('\n').map(Number)

describe('a command', () => {
  it('is run as it is written, whatever the delivery says', async () => {
    const odd = { event: '$(touch x)', action: '`id`', repo: "'; exit 3; '", deliveryId: '"; exit 4' }
    const command = `printf '%s|' "$RELAY_EVENT" "$RELAY_ACTION" "$RELAY_REPO" "$RELAY_DELIVERY" "$0" "$#"`
    expect(await run(command, { entry: odd })).toMatchObject({
      outcome: 'succeeded',
      answer: `$(touch x)|\`id\`|'; exit 3; '|"; exit 4|/bin/sh|0|`,
    })
  })

  it.each([
    ['exit 75', { outcome: 'retry', status: 75, error: 'exit code 75' }],
    ['no-such-program 2>/dev/null', { outcome: 'refused', status: 127, error: 'exit code 127' }],
    ['kill -SEGV $$', { outcome: 'refused', status: null, error: 'ended by SIGSEGV' }],
  ])('that ends with %s', async (command, result) => {
    expect(await run(command)).toMatchObject(result)
  })

  it('has ended when its shell has, whatever is left in the background', async () => {
    const file = path.join(emptyFolder(), 'pid')
    const result = await run(`sleep 60 & echo $! > ${file}; echo done`)
    expect(result).toMatchObject({ outcome: 'succeeded', answer: 'done\n' })
    const [pid = 0] = pidsIn(file)
    expect(isAlive(pid)).toBe(true)
    process.kill(pid)
  })
})

describe('a command that takes too long', () => {
  /** A shell with a child and a grandchild, whose ids it writes down. */
  const family = (file: string, first = ''): string =>
    `${first} echo begun; (sh -c '${first} echo $$ >> ${file}; sleep 60; :' & echo $$ >> ${file}; wait); :`
  const begun = { status: null, answer: 'begun\n' }
  /** In which three shells start on a busy machine, too. Milliseconds. */
  const LIMIT = 2000

  it('is ended with all it has started, and what it printed is stored', async () => {
    const file = path.join(emptyFolder(), 'pids')
    const late = { ...begun, outcome: 'refused', error: 'still running after 2 s' }
    expect(await run(family(file), { limit: LIMIT })).toEqual(late)
    expect(pidsIn(file)).toHaveLength(2)
    expect(pidsIn(file).filter(isAlive)).toEqual([])
  })

  it('is made to end when it does not want to, not before the grace', async () => {
    const file = path.join(emptyFolder(), 'pids')
    const before = performance.now()
    const { outcome } = await run(family(file, 'trap "" TERM;'), { limit: LIMIT, grace: 400 })
    expect(outcome).toBe('refused')
    expect(performance.now() - before).toBeGreaterThan(LIMIT + 390)
    expect(pidsIn(file)).toHaveLength(2)
    await expect.poll(() => pidsIn(file).filter(isAlive)).toEqual([])
  })

  it('is ended when relay stops', async () => {
    const file = path.join(emptyFolder(), 'pids')
    const stop = new AbortController()
    const running = run(family(file), { signal: stop.signal, limit: 60_000 })
    await expect.poll(() => (existsSync(file) ? pidsIn(file) : [])).toHaveLength(2)
    stop.abort()
    expect(await running).toEqual({ ...begun, outcome: 'killed', error: 'relay was stopped' })
    expect(pidsIn(file).filter(isAlive)).toEqual([])
  })
})

describe('the environment of a command', () => {
  /** What a command finds there, but for what its shell adds. */
  async function environment(env: Record<string, string>, entry: Partial<Delivery>) {
    const { answer } = await run('tr "\\0" "\\n" < /proc/self/environ', { env, entry })
    const lines = answer.split('\n').filter((line) => !/^(?:PWD|OLDPWD|SHLVL|_)=|^$/.test(line))
    return lines.toSorted()
  }

  it("is relay's without its secrets, and the delivery, whatever it had of that", async () => {
    const ofSources = 'SOURCE_STRIPE_SECRET SOURCE_MY_SHOP_SECRET_PREVIOUS'
    const names = `CLIENT_SECRET WEBHOOK_SECRET WEBHOOK_SECRET_PREVIOUS TOKEN_KEY STORE ${ofSources}`.split(
      ' ',
    )
    const files = names.map((name) => `${name}_FILE`)
    const secrets = [...names, ...files].map((name) => [`RELAY_${name}`, 'secret'])
    const own = { RELAY_PROFILE: 'sandbox', RELAY_ACTION: 'old', RELAY_FORWARD: 'http://a:b@c' }
    const all = { ...env, ...own, ...Object.fromEntries(secrets) }
    expect(await environment(all, { event: 'issues', action: null, repo: null })).toEqual([
      `PATH=${env.PATH}`,
      'RELAY_ACTION=',
      'RELAY_ATTEMPT=1',
      'RELAY_DELIVERY=72d3162e',
      'RELAY_EVENT=issues',
      'RELAY_NUMBER=7',
      'RELAY_PROFILE=sandbox',
      'RELAY_QUERY=',
      'RELAY_REF=',
      'RELAY_REPO=',
      'RELAY_SOURCE=github',
    ])
  })

  it('has none of the variables that the table of settings marks as secret, nor what stands for one', async () => {
    const marked = SETTING_NAMES.filter((name) => settingOf(name).secret ?? settingOf(name).inFile)
    expect(marked).toContain('storePassword')
    const ofSources = ['a', 'my-shop'].flatMap((name) =>
      ['', '_PREVIOUS'].flatMap((end) => [secretVariable(name) + end, `${secretVariable(name)}${end}_FILE`]),
    )
    const names = [...marked.flatMap(variablesOf), ...ofSources, 'RELAY_FORWARD', 'PGPASSFILE']
    const secrets = Object.fromEntries(names.map((name) => [name, 'canary']))
    const found = await environment({ ...env, ...secrets, GH_TOKEN: 'mine' }, {})
    expect(found.filter((line) => line.endsWith('=canary'))).toEqual([])
    // What is not relay's stays.
    expect(found).toContain('GH_TOKEN=mine')
  })

  it.each([
    ['a\0b\nc\u007fd\u0085e\x1b[31m', 'abcde[31m'],
    ['x'.repeat(2000), 'x'.repeat(1024)],
    [`${'x'.repeat(1022)}\u20ac`, 'x'.repeat(1022)],
    [`${'x'.repeat(1020)}\u{1f600}`, `${'x'.repeat(1020)}\u{1f600}`],
  ])('has no control characters, and at most 1 KiB, to the end of a character: %#', async (repo, found) => {
    expect(await environment(env, { repo })).toContain(`RELAY_REPO=${found}`)
  })
})
