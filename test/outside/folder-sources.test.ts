import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { secretVariable } from '../kit/delivery.js'
import { emptyFolder } from '../kit/folder.js'
import { type Place, place, type Serving } from '../kit/place.js'
import { type Received, type Receiver, receiver } from '../kit/receiver.js'
import { shared } from './fixture.js'
import { isProved, SENDERS, SENDERS_ENV, type Sender, STDIN } from './source-senders.js'

// A sender's token is its secret itself: a file of the working folder does not say which target gets it, nor which scheme sends it.

const PROVED = SENDERS.filter(isProved)

/** A folder whose relay.json has these settings. */
function folder(settings: object, dotenv = ''): string {
  const cwd = emptyFolder()
  writeFileSync(path.join(cwd, 'relay.json'), JSON.stringify(settings))
  if (dotenv !== '') writeFileSync(path.join(cwd, '.env'), dotenv)
  return cwd
}

function has({ headers, body }: Received, secret: string): boolean {
  return JSON.stringify([headers, body.toString('latin1')]).includes(secret)
}

describe('the secret of a source', () => {
  const here = shared(() => place({ host: 'none', env: SENDERS_ENV }))

  /** Has each source deliver once, and gives the names of those whose secret reached the target. */
  async function leaked(relay: Serving, target: Receiver): Promise<string[]> {
    const names: string[] = []
    for (const [i, { name, trigger, secret }] of PROVED.entries()) {
      const over = { cwd: relay.cwd, stdin: STDIN }
      expect(await here.runWith(over, 'trigger', '--source', name, ...trigger)).toMatchObject({ code: 0 })
      await target.has(i + 1)
      const [last] = target.received.slice(i)
      if (last && has(last, secret)) names.push(name)
    }
    return names
  }
  const tokens = PROVED.filter(({ isToken }) => isToken).map(({ name }) => name)

  it.each([
    ['forward', (url: string) => ({ forward: url })],
    ['routes', (url: string) => ({ routes: [{ forward: url }] })],
  ])('goes to no target that only relay.json names as %s, which is said at start', async (_, settings) => {
    await using target = await receiver()
    await using relay = await here.serveWith({ cwd: folder(settings(target.url)) })
    await relay.says(`they get deliveries of ${tokens.join(', ')} without the token`)
    expect(await leaked(relay, target)).toEqual([])
  })

  it('goes to no target that only .env names', async () => {
    await using target = await receiver()
    await using relay = await here.serveWith({ cwd: folder({}, `RELAY_FORWARD=${target.url}\n`) })
    expect(await leaked(relay, target)).toEqual([])
  })

  it('goes to one that the user names, if it is a token', async () => {
    await using target = await receiver()
    await using relay = await here.serve('--forward', target.url)
    expect(await leaked(relay, target)).toEqual(tokens)
    expect(relay.err).not.toContain('without the token')
  })
})

describe.each(PROVED)('a scheme that sends the secret, which a folder names for $name', (sender: Sender) => {
  const { secret } = sender
  const name = sender.name === 'gitlab' ? 'old' : sender.name
  const variable = secretVariable(name)
  const env = { [variable]: secret }
  let target: Receiver
  let here: Place
  beforeAll(async () => {
    target = await receiver()
    here = await place({ host: 'none', env: { RELAY_PORT: '0' } })
    return async () => {
      await target[Symbol.asyncDispose]()
      await here[Symbol.asyncDispose]()
    }
  })
  const send = (cwd: string, given: Readonly<Record<string, string>> = env) =>
    here.runWith(
      { cwd, env: given, stdin: STDIN },
      'trigger',
      'made',
      '--source',
      name,
      '--body',
      '-',
      '--to',
      target.url,
    )

  it.each([
    'gitlab',
    'token header=X-Leak event=$.type',
    'token header=Authorization prefix=Bearer event=$.type',
  ])('is not used with a secret that it does not bring along: %s', async (scheme) => {
    const text = `${name}=${scheme}`
    const before = target.received.length
    for (const cwd of [folder({ sources: text }), folder({}, `RELAY_SOURCES=${text}\n`)]) {
      const why = `${variable} is not used for the source ${name}: only this folder names its scheme`
      const refused = { code: 2, err: expect.stringContaining(why) }
      expect(await send(cwd)).toMatchObject(refused)
      expect(await here.runWith({ cwd, env }, 'serve', '--port', '0')).toMatchObject(refused)
    }
    // Another file of the folder is another author's: .env is often the user's.
    expect(await send(folder({ sources: text }, `${variable}=${secret}\n`), {})).toMatchObject({ code: 2 })
    expect(target.received.length).toBe(before)
    const own = folder({}, `RELAY_SOURCES=${text}\n${variable}=${secret}\n`)
    expect(await send(own, {})).toMatchObject({ code: 0 })
    expect(await send(folder({ sources: text }), { ...env, RELAY_SOURCES: text })).toMatchObject({
      code: 0,
    })
  })
})
