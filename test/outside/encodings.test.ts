import { once } from 'node:events'
import { createServer, request as httpRequest } from 'node:http'
import * as zlib from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { githubDelivery, post } from '../kit/delivery.js'
import { CLIENT, hostVariables, place, USER } from '../kit/place.js'
import { portOf } from '../kit/ports.js'
import { receiver } from '../kit/receiver.js'
import { smee } from '../kit/smee.js'
import { fresh, json } from './fixture.js'

const TEXT = '{"ok":true,"says":"gr\u00fc\u00df dich"}\nand more\n'
const ID = '72d3162e-cc78-11e3-81ab-4c9367dc0958'
const TOKEN = 'gho_of-somebody'
const here = fresh(() => place({ host: 'none' }))

type Pack = (bytes: Uint8Array) => Uint8Array

/** From Node 22.15. */
const { zstdCompressSync: zstd }: { readonly zstdCompressSync?: Pack } = Object(zlib)

/** A `Content-Encoding`, and how a server makes it. */
const PACKED: readonly (readonly [encoding: string, Pack, name?: string])[] = [
  ['gzip', zlib.gzipSync],
  ['x-gzip', zlib.gzipSync],
  ['GZip', zlib.gzipSync],
  ['deflate', zlib.deflateSync],
  ['deflate', zlib.deflateRawSync, 'deflate without its header'],
  ['br', zlib.brotliCompressSync],
  ['identity', (bytes) => bytes],
  ['identity, gzip', zlib.gzipSync],
  ['deflate, gzip', (bytes) => zlib.gzipSync(zlib.deflateSync(bytes))],
  ['gzip, br, gzip', (bytes) => zlib.gzipSync(zlib.brotliCompressSync(zlib.gzipSync(bytes)))],
  ...(zstd ? [['zstd', zstd] as const] : []),
]
const NAMED = PACKED.map(([encoding, pack, name = encoding]) => [name, encoding, pack] as const)

/** What relay stores of a target's answer with these headers and bytes. */
async function stored(encoding: string, body: Uint8Array) {
  await using target = await receiver({ headers: { 'content-encoding': encoding }, body })
  const relay = await here.serve('--forward', target.url)
  await relay.deliver()
  const { outcome } = await relay.object({ type: 'attempt' })
  const { attempts } = await json(here.run('show', '1', '--json'))
  const [{ answer, answerBase64 }] = attempts
  const { out } = await here.run('show', '1')
  await relay.stop()
  return { outcome, answer: answer ?? Buffer.from(answerBase64, 'base64'), out }
}

describe('the answer of a target that is compressed', () => {
  it.each(NAMED)('%s: is shown as text', async (_, encoding, pack) => {
    const { outcome, answer, out } = await stored(encoding, pack(Buffer.from(TEXT)))
    expect([outcome, answer]).toEqual(['succeeded', TEXT])
    expect(out).toContain('"says":"gr\u00fc\u00df dich"')
  })

  it.each(NAMED)('%s: is shown as far as it came', async (_, encoding, pack) => {
    // Random enough to be as long packed as it is plain.
    const long = Array.from({ length: 9000 }, (_each, n) =>
      ((n * n * 2_654_435_761) % 8999).toString(36),
    ).join(' ')
    const bytes = pack(Buffer.from(long))
    const { outcome, answer } = await stored(encoding, bytes.subarray(0, bytes.length - 20))
    expect([outcome, answer]).toEqual(['succeeded', long.slice(0, 4096)])
  })

  it.each([
    ['is none', 'gzip', 'plain text'],
    ['is unknown', 'zap', 'of another kind'],
    ['is applied too often', 'gzip, gzip, gzip, gzip', 'plain text'],
    ['is the name of a property', 'constructor', 'plain text'],
  ])('is shown as it came where the coding %s', async (_, encoding, text) => {
    expect(await stored(encoding, Buffer.from(text))).toMatchObject({ outcome: 'succeeded', answer: text })
  })

  it('is named where nothing reads it', async () => {
    const { answer, out } = await stored('zap', Buffer.from([0xff, 0xfe, 0x1f, 0x8b]))
    expect(answer).toEqual(Buffer.from([0xff, 0xfe, 0x1f, 0x8b]))
    expect(out).toContain('(compressed: zap)')
  })

  it('is unpacked no further than it is shown', async () => {
    // 6.4 GB, which would take longer than the test may.
    const member = zlib.gzipSync(Buffer.alloc(16_000_000, 'x'), { level: 9 })
    const bomb = zlib.gzipSync(Buffer.concat(Array.from({ length: 400 }, () => member)), { level: 9 })
    expect(bomb.length).toBeLessThan(200_000)
    expect(await stored('gzip, gzip', bomb)).toMatchObject({ outcome: 'succeeded', answer: 'x'.repeat(4096) })
  })
})

/** A server before another one, which compresses what that sends, or says that it does, as proxies do that were not asked. */
async function compressing(
  port: number,
  encoding: string,
  open: (() => zlib.Gzip | zlib.BrotliCompress) | undefined,
) {
  const server = createServer((incoming, outgoing) => {
    const { method, url: path, headers } = incoming
    const onward = httpRequest({ host: '127.0.0.1', port, method, path, headers }, (answer) => {
      const packer = open?.()
      outgoing.writeHead(answer.statusCode ?? 0, { ...answer.headers, 'content-encoding': encoding })
      outgoing.flushHeaders()
      answer
        .on('data', (chunk) => {
          if (!packer) return outgoing.write(chunk)
          packer.write(chunk)
          return packer.flush()
        })
        .on('end', () => (packer ?? outgoing).end())
      packer?.pipe(outgoing)
    })
    outgoing.on('close', () => onward.destroy())
    incoming.pipe(onward.on('error', () => {}))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${portOf(server)}`,
    async [Symbol.asyncDispose]() {
      server.close()
      server.closeAllConnections()
    },
  }
}

describe('the events of a tunnel that are compressed although relay asks not to', () => {
  it.each([
    ['gzip', zlib.createGzip],
    ['deflate', zlib.createDeflate],
    ['br', zlib.createBrotliCompress],
  ] as const)('%s: are read as they come', async (encoding, open) => {
    await using server = await smee()
    await using front = await compressing(Number(new URL(server.url).port), encoding, () => open())
    const relay = await here.serve('--tunnel', server.channel.replace(server.url, front.url))
    await relay.object({ type: 'tunnel', state: 'connected', roundTrip: 'ok' })
    await post(server.channel, githubDelivery({ id: ID }))
    expect(await relay.object({ type: 'delivery' })).toMatchObject({ n: 1, delivery: ID })
  })

  it('in a way that nothing reads are named', async () => {
    await using server = await smee()
    await using front = await compressing(Number(new URL(server.url).port), 'zap', undefined)
    const relay = await here.serve('--tunnel', server.channel.replace(server.url, front.url))
    const { why } = await relay.object({ type: 'tunnel', state: 'waiting' })
    expect(why).toBe('its answer cannot be read: it is compressed (zap)')
  })
})

it.each(NAMED)('%s: the answer of a code host is read', async (_, encoding, pack) => {
  const body = pack(Buffer.from(JSON.stringify({ login: USER, id: 1 })))
  const headers = {
    'x-oauth-scopes': 'repo',
    'content-type': 'application/json',
    'content-encoding': encoding,
  }
  await using host = await receiver({ headers, body })
  await using at = await place({ host: 'none', env: hostVariables('github', host.url, CLIENT) })
  // It is read before the token is stored.
  expect(await at.useToken(TOKEN)).toBe(TOKEN)
})
