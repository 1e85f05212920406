import { describe, expect, it } from 'vitest'
import { RelayError } from '../../src/base/errors.js'
import { sendOnce, type SendOnce } from '../../src/net/send-once.js'
import { openDatabase } from '../../src/store/open.js'
import { openChannel } from '../../src/tunnel/channel.js'
import { scriptedServer } from '../helpers/scripted-server.js'
import { gosmee as startGosmee, smee as startSmee } from '../kit/smee.js'

async function emptyStore() {
  return (await openDatabase({ kind: 'memory', folder: '' })).store
}

describe('openChannel', () => {
  it('returns an address with a path unchanged, without a request', async () => {
    const store = await emptyStore()
    const address = 'https://smee.invalid/Kf3v'
    expect(await openChannel(address, { store, sendOnce })).toBe(address)
    expect(await store.list('')).toEqual([])
  })

  it.each([
    ['smee', startSmee],
    ['gosmee', startGosmee],
  ] as const)('creates a channel on a server and saves it for that server: %s', async (_, startServer) => {
    await using smee = await startServer()
    await using other = await startSmee()
    const store = await emptyStore()
    const url = await openChannel(smee.url, { store, sendOnce })
    expect(url).toMatch(new RegExp(`^${smee.url}/[\\w-]{16}$`))
    expect(await openChannel(`${smee.url}/`, { store, sendOnce })).toBe(url)
    expect(await openChannel(other.url, { store, sendOnce })).toMatch(other.url)
    expect(await openChannel(smee.url, { store, sendOnce })).not.toBe(url)
  })

  it.each([
    ['answers 503', { status: 503 }, 'it answers 503'],
    ['sends no location', { status: 307 }, 'it answers 307'],
    ['answers with a page', { status: 200 }, 'it answers 200'],
    [
      'redirects to another host',
      { status: 307, headers: { location: 'https://evil.example/x' } },
      'it is not a smee server',
    ],
    ['redirects to its root', { status: 307, headers: { location: '/' } }, 'it is not a smee server'],
  ])('fails if the server %s', async (_, answer, reason) => {
    await using server = await scriptedServer(() => answer)
    const store = await emptyStore()
    await expect(openChannel(server.url, { store, sendOnce })).rejects.toEqual(
      new RelayError('provider_failed', `${server.url} did not create a channel: ${reason}`),
    )
    expect(await store.list('')).toEqual([])
  })

  it('ignores the scheme that a server behind a proxy sends', async () => {
    await using server = await scriptedServer(({ headers }) => ({
      status: 302,
      headers: { location: `https://${headers.host}/made` },
    }))
    expect(await openChannel(server.url, { store: await emptyStore(), sendOnce })).toBe(`${server.url}/made`)
  })

  it('fails if the server does not answer in time', async () => {
    await using server = await scriptedServer(() => 'silence')
    const impatient: SendOnce = (url, request) =>
      sendOnce(url, { ...request, signal: AbortSignal.timeout(50) })
    await expect(openChannel(server.url, { store: await emptyStore(), sendOnce: impatient })).rejects.toThrow(
      `${server.url} did not create a channel: no answer in time`,
    )
  })

  it('gives the reason of a connection error', async () => {
    const server = await scriptedServer(() => ({}))
    await server[Symbol.asyncDispose]()
    await expect(openChannel(server.url, { store: await emptyStore(), sendOnce })).rejects.toThrow(
      `${server.url} did not create a channel: connection refused`,
    )
  })

  it('takes another channel on the same server in place of the saved one for `new`', async () => {
    await using smee = await startSmee()
    const store = await emptyStore()
    const first = await openChannel(smee.url, { store, sendOnce })
    const second = await openChannel('new', { store, sendOnce })
    expect(second).toMatch(new RegExp(`^${smee.url}/[\\w-]{16}$`))
    expect(second).not.toBe(first)
    expect(await openChannel(smee.url, { store, sendOnce })).toBe(second)
  })
})
