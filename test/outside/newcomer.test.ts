import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type DeliveryOptions, githubDelivery, post } from '../kit/delivery.js'
import { addressOf, signInAt } from '../kit/pages.js'
import type { Place, Serving } from '../kit/place.js'
import { portOf } from '../kit/ports.js'
import type { Ran, Running, StartOptions } from '../kit/run.js'
import { bare } from './example.js'

const SANDBOX = ['--sandbox', '--sandbox-port', '0']
const FORM = 'application/x-www-form-urlencoded'
const AS_FORM = 'payload=%7B%7D'

/** What a message advises: the words that a pattern captures. */
function advice(said: string, pattern: RegExp): string {
  const [, found] = pattern.exec(said) ?? []
  if (found === undefined) throw new Error(`no advice like ${pattern} in:\n${said}`)
  return found
}

const words = (line: string): string[] => line.replace(/^relay /, '').split(' ')

let here: Place
let serving: Serving
let url: string
/** The webhook secret that the sandbox's relay made. */
let secret: string
const relay = (...argv: string[]): Promise<Ran> => here.run(...argv)

/** Makes a mistake, follows the advice in the message, and gives what came of it. */
async function follow(mistake: string, pattern: RegExp, next: (advised: string) => string): Promise<Ran> {
  const { code, err } = await relay(...words(mistake))
  expect({ mistake, code }).not.toEqual({ mistake, code: 0 })
  return relay(...words(next(advice(err, pattern))))
}

beforeAll(async () => {
  here = await bare({ env: { RELAY_PROFILE: 'sandbox' } })
  serving = await here.serve(...SANDBOX)
  url = serving.address
  secret = (await here.run('config', '--reveal', 'webhookSecret')).out.trim()
  // The sandbox's ping.
  await serving.object({ type: 'delivery', event: 'ping' })
})
afterAll(() => here[Symbol.asyncDispose]())

describe('a newcomer', () => {
  const same = (advised: string): string => advised

  it.each<[string, RegExp, (advised: string) => string]>([
    ['history', /Did you mean (relay .*)\?/, same],
    ['me --user nobody', /Did you mean (relay .*)\?/, () => 'help whoami'],
    ['trigerr push', /Did you mean (relay .*)\?/, (meant) => `${meant} push`],
    ['emit push', /Did you mean (relay .*)\?/, (meant) => `${meant} push`],
    ['help lgo', /Did you mean (relay .*)\?/, same],
    ['log --lsat 1', /Did you mean (--\w+)\?/, (flag) => `log ${flag} 1`],
    ['show', /\((relay .*) says more\)/, same],
    ['show 99', /entries are #1 to (#\d+)/, (entry) => `show ${entry}`],
    ['show lsat', /Give its number, or (last)/, (entry) => `show ${entry}`],
    ['trigger', /(relay trigger --list)/, same],
    ['trigger pul_request.opend', /did you mean (\S+)\?/, (event) => `trigger ${event}`],
    ['trigger pull_request.merged', /did you mean (\S+)\?/, (event) => `trigger ${event}`],
    ['trigger issue.created', /did you mean (\S+)\?/, (event) => `trigger ${event}`],
    ['trigger push --set ref', /for example (\S+)/, (edit) => `trigger pull_request.opened --set ${edit}`],
    ['routes test 1 --forward a.com/x', /write (\S+)/, (address) => `routes test 1 --forward ${address}`],
    ['config --reveal webhooksecrte', /did you mean (\w+)\?/, (name) => `config --reveal ${name}`],
    ['replay', /or (--last)/, (flag) => `replay ${flag} 1`],
    ['log --profile sanbox', /did you mean (\w+)\?/, (name) => `log --profile ${name}`],
  ])('writes relay %s, and does what the message says', async (mistake, pattern, next) => {
    expect(await follow(mistake, pattern, next)).toMatchObject({ code: 0 })
  })

  it('replays a payload without its headers', async () => {
    writeFileSync(path.join(here.cwd, 'push.json'), '{"ref":"refs/heads/main"}')
    const next = (flags: string): string => `replay push.json ${flags}`
    const ran = await follow('replay push.json', /as with (--event push)/, next)
    expect(ran).toMatchObject({ code: 0, out: expect.stringMatching(/^ok +push\.json +200/) })
  })

  it('exports to a file that exists', async () => {
    writeFileSync(path.join(here.cwd, 'old.json'), '')
    const write = 'export last --out old.json'
    const ran = await follow(write, /with (--force)/, (flag) => `${write} ${flag}`)
    expect(ran).toMatchObject({ code: 0 })
  })

  it('misspells a setting in relay.json', async () => {
    const file = path.join(here.cwd, 'relay.json')
    writeFileSync(file, '{"forwrad":["3000"]}')
    const { err } = await relay('routes')
    writeFileSync(file, `{"${advice(err, /did you mean (\w+)\?/)}":["3000"]}`)
    const ran = await relay('routes')
    writeFileSync(file, '{}')
    expect(ran).toMatchObject({ code: 0 })
  })

  it('comments without having signed in', async () => {
    const comment = ['comment', 'octo/demo#1', 'hello']
    const { code, err } = await relay(...comment)
    expect(code).toBe(4)
    const command = words(advice(err, /Run (relay login)/))
    await signInWith(command)
    expect(await relay(...comment)).toMatchObject({ code: 0 })
  })

  it('comments with a token that has expired', async () => {
    await using mine = await bare()
    let now = Date.now()
    const seams = { clock: () => now }
    await mine.serveWith({ seams, env: { RELAY_TOKEN_TTL: '1d' } }, ...SANDBOX)
    const comment = (): Promise<Ran> => mine.runWith({ seams }, 'comment', 'octo/demo#1', 'hello')
    await signInWith(['login'], mine, { seams })
    expect(await comment()).toMatchObject({ code: 0 })
    now += 86_400_000
    const { code, err } = await comment()
    expect(code).toBe(4)
    await signInWith(words(advice(err, /[Rr]un (relay login)/)), mine, { seams })
    expect(await comment()).toMatchObject({ code: 0 })
  })

  it('sends the webhook to a wrong path', async () => {
    const headers = { 'X-GitHub-Event': 'push', 'X-GitHub-Delivery': 'a' }
    const sent = await fetch(`${url}/webhooks`, { method: 'POST', headers, body: '{}' })
    expect(sent.status).toBe(404)
    await serving.says('must end in /webhook')
    const end = advice(serving.err, /must end in (\/webhook)/)
    expect(await relay('trigger', 'push', '--to', url + end)).toMatchObject({ code: 0 })
  })

  it('signs with another secret than the relay has', async () => {
    const run = (secret: string): Promise<Ran> =>
      here.runWith({ env: { RELAY_WEBHOOK_SECRET: secret } }, 'trigger', 'push')
    const { code, err } = await run('another secret')
    expect(code).toBe(3)
    const named = advice(err, /Set (\w+) to the secret that relay serve was started with/)
    expect(named).toBe('RELAY_WEBHOOK_SECRET')
    expect(await run(secret)).toMatchObject({ code: 0 })
  })

  it.each<[string, DeliveryOptions, RegExp, DeliveryOptions]>([
    ['another secret', { secret: 'typo' }, /signed with (another secret)/, {}],
    ['no secret', { set: { 'X-Hub-Signature-256': undefined } }, /does the webhook have (a secret)/, {}],
    ['a form that is JSON', { type: FORM }, /is not a (form) with a payload/, { type: 'application/json' }],
    ['JSON that is a form', { body: AS_FORM }, /the body is not (JSON)/, { type: FORM, body: AS_FORM }],
    [
      'a body that a proxy re-encoded',
      { body: '{ }', signed: '{}' },
      /signed as (compact JSON)/,
      { body: '{}' },
    ],
    ['another event', { set: { 'X-GitHub-Event': undefined } }, /(X-GitHub-Event)/i, {}],
  ])('has a webhook with %s: log --refused says why', async (id, mistake, pattern, mended) => {
    const send = async (options: DeliveryOptions): Promise<number> => {
      const named = { id: `${id} `.replaceAll(' ', '-'), ...options }
      return (await post(`${url}/webhook`, githubDelivery({ secret, ...named }))).status
    }
    expect(await send(mistake)).not.toBe(200)
    const { out } = await relay('log', '--refused', '--last', '1')
    expect(advice(out, pattern)).not.toBe('')
    expect(await send(mended)).toBe(200)
  })

  it('starts a second relay on the port and the profile of the first', async () => {
    const busy = createServer().listen(0, '127.0.0.1')
    await once(busy, 'listening')
    const start = (...flags: string[]): Running => here.start('serve', '--json', ...flags)
    const second = start('--port', '0', ...SANDBOX)
    const flag = advice((await second.ended).err, /with (--profile)/)
    const third = start(flag, 'other', '--port', String(portOf(busy)))
    const any = advice((await third.ended).err, /with --port, or (0) for any free port/)
    busy.close()
    const fourth = start(flag, 'other', '--port', any)
    expect(await fourth.url()).toMatch(/^http:/)
  })
})

/** Runs `login`, and presses Authorize in the browser. */
async function signInWith(argv: readonly string[], at = here, options: StartOptions = {}): Promise<void> {
  const login = at.startWith(options, ...argv, '--no-browser')
  await signInAt(await addressOf(login))
  expect(await login.ended).toMatchObject({ code: 0 })
}
