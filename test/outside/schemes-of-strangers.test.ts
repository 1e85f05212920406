import { createHmac } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { post, type Header } from '../kit/delivery.js'
import { emptyFolder } from '../kit/folder.js'
import { place } from '../kit/place.js'
import { type Received, receiver, valuesOf } from '../kit/receiver.js'
import { SENDERS } from '../kit/senders.js'

/** A secret of the user, in both forms that schemes distinguish. */
const PLAIN = 'canary-plain-secret-of-the-user'
const SIGNING = `whsec_${Buffer.from('canary-signing-secret-of-the-user').toString('base64')}`

const SCHEMES = [
  ...new Set([
    ...Object.values(SENDERS).map(({ scheme }) => scheme),
    'token header=X-Token',
    'token header=Authorization prefix=Bearer',
    'token header=Cookie prefix=a=',
    'hmac header=X-Signature',
    'gitlab',
    'none',
  ]),
]

const textOf = ({ headers, body, path: url }: Received): string =>
  `${url}\n${headers.map((line) => line.join(': ')).join('\n')}\n${body.toString()}`

function fixture(source: string, scheme: string) {
  const provider = scheme.replace(/ .*/, '')
  return {
    relay: 1,
    provider,
    source,
    scheme,
    event: 'push',
    delivery: 'd1',
    headers: {},
    body: '{"id":"1"}',
  }
}

const TAKEN_ANYWAY = /^3 error: (\d) of \1 answers were not as expected\n$/

describe('a file whose scheme the user has not named', () => {
  it.each(SCHEMES)('gets no secret sent: %s', async (scheme) => {
    await using here = await place({ host: 'none' })
    await using target = await receiver()
    const folder = emptyFolder()
    const cwd = emptyFolder()
    for (const source of [scheme.replace(/ .*/, ''), 'billing'])
      writeFileSync(path.join(folder, `${source}.json`), JSON.stringify(fixture(source, scheme)))
    const [first] = ['billing.json']
    const stdin = JSON.stringify(fixture('billing', scheme))
    for (const secret of [PLAIN, SIGNING])
      for (const flags of [[], ['--keep-id'], ['--set', 'id=2'], ['--tamper', 'body']])
        for (const word of [folder, path.join(folder, first ?? ''), '-']) {
          const env = { SECRET: secret }
          const argv = ['replay', word, '--secret-env', 'SECRET', '--to', target.url, ...flags]
          const { code, err } = await here.runWith({ env, cwd, stdin }, ...argv)
          // The target takes what is tampered with, too, which is not what is expected of one.
          const sent = flags[0] === '--tamper' ? TAKEN_ANYWAY : /^0 /
          expect(`${code} ${err}`).toMatch(code === 2 ? /sends the secret itself.*relay source add/ : sent)
        }
    expect(
      target.received.map(textOf).filter((text) => text.includes(PLAIN) || text.includes(SIGNING)),
    ).toEqual([])
  })

  it('nor where only the project of the working folder names it', async () => {
    await using here = await place({ host: 'none' })
    await using target = await receiver()
    const cwd = emptyFolder()
    mkdirSync(path.join(cwd, '.git'))
    const scheme = 'token header=X-Token'
    writeFileSync(path.join(cwd, 'relay.json'), JSON.stringify({ sources: [`billing=${scheme}`] }))
    writeFileSync(path.join(cwd, 'f.json'), JSON.stringify(fixture('billing', scheme)))
    const argv = ['replay', 'f.json', '--secret-env', 'SECRET', '--to', target.url]
    for (const more of [[], ['--source', 'billing']])
      expect(await here.runWith({ cwd, env: { SECRET: PLAIN } }, ...argv, ...more)).toMatchObject({ code: 2 })
    expect(target.received).toEqual([])
  })

  it('nor where a relay runs that was started in the folder of a stranger', async () => {
    await using here = await place({ host: 'none' })
    await using target = await receiver()
    const scheme = 'token header=X-Token'
    const theirs = emptyFolder()
    writeFileSync(
      path.join(theirs, '.env'),
      `RELAY_SOURCES=billing=${scheme}\nRELAY_SOURCE_BILLING_SECRET=of-the-folder\n`,
    )
    await using _relay = await here.serveWith({ cwd: theirs })
    const cwd = emptyFolder()
    writeFileSync(path.join(cwd, 'f.json'), JSON.stringify(fixture('billing', scheme)))
    const argv = ['replay', 'f.json', '--to', target.url]
    const env = { SECRET: PLAIN, RELAY_SOURCE_BILLING_SECRET: PLAIN }
    for (const more of [[], ['--secret-env', 'SECRET']])
      expect((await here.runWith({ cwd, env }, ...argv, ...more)).code).toBe(2)
    expect(target.received).toEqual([])
    const named = { ...env, RELAY_SOURCES: `billing=${scheme}` }
    expect(await here.runWith({ cwd, env: named }, ...argv)).toMatchObject({ code: 0 })
    expect(target.received.map((each) => valuesOf(each, 'x-token'))).toEqual([[PLAIN]])
  })

  it('but the user can name it, and can send it as it is', async () => {
    await using here = await place({ host: 'none' })
    await using target = await receiver()
    const cwd = emptyFolder()
    const scheme = 'token header=X-Token'
    writeFileSync(path.join(cwd, 'f.json'), JSON.stringify(fixture('billing', scheme)))
    const argv = ['replay', 'f.json', '--secret-env', 'SECRET', '--to', target.url]
    const env = { SECRET: PLAIN }
    expect(await here.runWith({ cwd, env }, ...argv, '--keep-signature')).toMatchObject({ code: 0 })
    expect(
      await here.runWith({ cwd, env: { ...env, RELAY_SOURCES: `billing=${scheme}` } }, ...argv),
    ).toMatchObject({ code: 0 })
    const stored = await here.runWith({ stdin: 'another-secret' }, 'source', 'add', `billing=${scheme}`)
    expect(stored).toMatchObject({ code: 0 })
    expect(await here.runWith({ cwd, env }, ...argv)).toMatchObject({ code: 0 })
    const trigger = [
      'trigger',
      'push',
      '--source',
      'gitlab',
      '--body',
      '-',
      '--secret-env',
      'SECRET',
      '--to',
      target.url,
    ]
    expect(await here.runWith({ env, stdin: '{}' }, ...trigger)).toMatchObject({ code: 0 })
    const tokens = target.received.map((each) => [
      ...valuesOf(each, 'x-token'),
      ...valuesOf(each, 'x-gitlab-token'),
    ])
    expect(tokens).toEqual([[], [PLAIN], [PLAIN], [PLAIN]])
  })
})

it.each(['id', 'event'])('a token is no %s, which logs and commands show', async (part) => {
  await using here = await place({ host: 'none', env: { RELAY_SOURCE_SHOP_SECRET: PLAIN } })
  for (const spelled of ['X-Key', 'x-key', 'X-KEY#a']) {
    const source = `shop=token header=X-Key ${part}=${spelled}`
    const { code, err } = await here.run('serve', '--port', '0', '--source', source)
    expect([code, err]).toEqual([2, expect.stringContaining(`cannot have ${part}=x-key`)])
  }
})

/** Headers of every kind that relay leaves out somewhere, and some that it does not. */
const HEADERS = [
  'Authorization',
  'Cookie',
  'Proxy-Authorization',
  'Proxy-Connection',
  'Proxy-Anything',
  'X-Gitlab-Token',
  'Host',
  'Content-Length',
  'Connection',
  'Keep-Alive',
  'TE',
  'Trailer',
  'Transfer-Encoding',
  'Upgrade',
  'Expect',
  'X-Relay-Attempt',
  'X-Relay-Edited-From',
  'X-Relay-Anything',
  'Date',
  'Via',
  'Forwarded',
  'X-Forwarded-For',
  'User-Agent',
  'Signature',
  'X-Signature',
  'Set-Cookie',
  'WWW-Authenticate',
]

describe('a scheme names only headers that relay stores and forwards, or is refused:', () => {
  it.each(HEADERS.flatMap((header) => [header, header.toLowerCase()]))('%s', async (header) => {
    await using here = await place({ host: 'none' })
    await using target = await receiver()
    const time = String(Math.floor(Date.now() / 1000))
    const schemes: Record<string, [before: string, lines: readonly Header[]]> = {
      [`hmac header=${header}`]: ['', [[header, '']]],
      [`hmac header=X-S time=${header}`]: [
        `${time}.`,
        [
          ['X-S', ''],
          [header, time],
        ],
      ],
      [`hmac header=X-S id=${header} signed={id}.{body}`]: [
        'd-1.',
        [
          ['X-S', ''],
          [header, 'd-1'],
        ],
      ],
    }
    const refused: string[] = []
    for (const [scheme, [before, lines]] of Object.entries(schemes)) {
      const body = JSON.stringify({ scheme })
      const env = {
        RELAY_SOURCES: `own=${scheme}`,
        RELAY_SOURCE_OWN_SECRET: PLAIN,
        RELAY_FORWARD: target.url,
      }
      const program = here.startWith({ env }, 'serve', '--port', '0', '--json')
      const started = await Promise.race([program.url(), program.ended])
      if (typeof started !== 'string') {
        refused.push(`${started.code} ${started.err}`)
        continue
      }
      const signature = createHmac('sha256', PLAIN)
        .update(before + body)
        .digest('hex')
      const headers = lines.map(([name, value]): Header => [name, value || signature])
      const { status } = await post(`${started}/webhook/own`, {
        headers: [['Content-Type', 'application/json'], ...headers],
        body: Buffer.from(body),
      })
      expect([scheme, status]).toEqual([scheme, 200])
      const { n } = await program.object({ type: 'attempt' })
      expect(target.received.at(-1)?.headers.map((line) => line.join(':'))).toEqual(
        expect.arrayContaining(headers.map((line) => line.join(':'))),
      )
      const verified = await here.runWith({ env }, 'verify', String(n))
      expect([scheme, verified.out]).toEqual([scheme, expect.stringMatching(/^valid/)])
      await program.stop()
    }
    expect(refused.filter((said) => !/^2 .*relay does not store and forward/.test(said))).toEqual([])
  })
})

/** Definitions of which relay could sign nothing that it would prove, and the words that are to be changed. */
const UNUSABLE: Readonly<Record<string, string>> = {
  'hmac header=X-S signed={id}.{body} id=X-S#id': 'id=x-s#id',
  'hmac header=X-S signed={id}.{body} id=X-H#id': 'id=x-h#id',
  'hmac header=X-S signed={id}.{timestamp}.{body} id=X-H#i time=X-H#t': 'id=x-h#i or time=x-h#t',
  'hmac header=X-S prefix=v1= time=X-H#t': 'time=x-h#t',
  'hmac header=X-S signed={id}.{body} id=X-S': 'id=x-s',
  'hmac header=X-S id=X-S': 'id=x-s',
  'hmac header=X-S event=X-S': 'event=x-s',
  'hmac header=X-S event=x-s#e prefix=v1=': 'event=x-s#e',
  'hmac header=X-S time=X-S': 'time=x-s',
  'hmac header=X-S signed={id}.{timestamp}.{body} id=X-T time=X-T': 'id=x-t or time=x-t',
  'hmac header=X-S event=X-E id=X-E': 'event=x-e or id=x-e',
  'hmac header=X-S event=$.a time=$.a.b': 'event=$.a or time=$.a.b',
  'token header=X-S event=X-E id=X-E': 'event=x-e or id=x-e',
  'none event=X-E#e': 'event=x-e#e',
}

describe('a scheme with which nothing could be proved', () => {
  it.each(Object.entries(UNUSABLE))('is refused with what to change: %s', async (scheme, words) => {
    await using here = await place({ host: 'none' })
    const { code, out, err } = await here.run('serve', '--source', `own=${scheme}`)
    expect([code, out]).toEqual([2, ''])
    const [name = ''] = scheme.split(' ')
    expect(err).toContain(
      `error: --source: The scheme ${name} could not prove what it signs: change ${words}. Each of`,
    )
  })
})

it('a scheme that has a part twice is refused', async () => {
  await using here = await place({ host: 'none' })
  const parts = ['header=X-S', 'prefix=a', 'event=X-E', 'id=X-I', 'time=X-T', 'signed={timestamp}.{body}']
  for (const part of parts) {
    const [key] = part.split('=')
    const scheme = ['hmac', ...parts, part].join(' ')
    const { code, err } = await here.run('serve', '--source', `own=${scheme}`)
    expect([code, err]).toEqual([2, expect.stringContaining(`has ${key}= twice: leave one out`)])
  }
})

describe('a scheme that is taken', () => {
  it.each([
    'hmac header=X-S prefix=v1= time=X-S#t',
    'hmac header=X-S prefix=t= time=X-S#t event=$.kind',
    'hmac header=X-S signed={id}.{timestamp}.{body} id=X-I time=X-T event=X-E',
    'hmac header=X-S signed={id}|{body} id=X-I event=$.a.kind',
    'hmac header=X-S time=$.at event=$.kind id=$.of.id',
    'token header=X-S prefix=Bearer event=X-E id=X-I',
  ])('proves what relay signs with it: %s', async (scheme) => {
    await using here = await place({ host: 'none' })
    const env = { RELAY_SOURCES: `own=${scheme}`, RELAY_SOURCE_OWN_SECRET: PLAIN }
    const relay = await here.serveWith({ env })
    const body = JSON.stringify({
      at: Math.floor(Date.now() / 1000),
      kind: 'webhook',
      a: { kind: 'webhook' },
    })
    const argv = [
      'trigger',
      ...(scheme.includes('event=') ? ['webhook'] : []),
      '--source',
      'own',
      '--body',
      '-',
    ]
    expect(await here.runWith({ env, stdin: body }, ...argv)).toMatchObject({ code: 0 })
    const delivery = await relay.object({ type: 'delivery' })
    expect(delivery).toMatchObject({ source: 'own', event: 'webhook' })
  })
})
