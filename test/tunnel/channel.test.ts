import { describe, expect, it } from 'vitest'
import { RelayError } from '../../src/base/errors.js'
import { outboundFetch as fetch } from '../../src/providers/fetch.js'
import { openDatabase } from '../../src/store/open.js'
import { openChannel } from '../../src/tunnel/channel.js'
import { scriptedServer } from '../helpers/scripted-server.js'
import { startSmee } from '../helpers/smee-server.js'

async function emptyStore() {
  return (await openDatabase({ kind: 'memory', folder: '' })).store
}

describe('openChannel', () => {
  it('takes an address with a path as it is, and asks nobody', async () => {
    const store = await emptyStore()
    const address = 'https://smee.invalid/Kf3v'
    expect(await openChannel(address, { store, fetch })).toBe(address)
    expect(await store.list('')).toEqual([])
  })

  it.each([false, true])(
    'makes one on a server, and remembers it for that server (gosmee: %s)',
    async (raw) => {
      await using smee = await startSmee({ raw })
      await using other = await startSmee()
      const store = await emptyStore()
      const url = await openChannel(smee.url, { store, fetch })
      expect(url).toMatch(new RegExp(`^${smee.url}/[\\w-]{16}$`))
      expect(await openChannel(`${smee.url}/`, { store, fetch })).toBe(url)
      expect(await openChannel(other.url, { store, fetch })).toMatch(other.url)
      expect(await openChannel(smee.url, { store, fetch })).not.toBe(url)
    },
  )

  it.each([
    ['answers 503', { status: 503 }, 'it answers 503'],
    ['sends no location', { status: 307 }, 'it answers 307'],
    ['is a page', { status: 200 }, 'it answers 200'],
    [
      'leads elsewhere',
      { status: 307, headers: { location: 'https://evil.example/x' } },
      'it is no smee server',
    ],
    ['leads to itself', { status: 307, headers: { location: '/' } }, 'it is no smee server'],
  ])('fails where the server %s', async (_, answer, why) => {
    await using server = await scriptedServer(() => answer)
    const store = await emptyStore()
    await expect(openChannel(server.url, { store, fetch })).rejects.toEqual(
      new RelayError('provider_failed', `${server.url} makes no channel: ${why}`),
    )
    expect(await store.list('')).toEqual([])
  })

  it('does not take the scheme from a server behind a proxy', async () => {
    await using server = await scriptedServer(({ headers }) => ({
      status: 302,
      headers: { location: `https://${headers.host}/made` },
    }))
    expect(await openChannel(server.url, { store: await emptyStore(), fetch })).toBe(`${server.url}/made`)
  })

  it('waits for a server for no longer than its limit', async () => {
    await using server = await scriptedServer(() => 'silence')
    const late: typeof globalThis.fetch = (url, init) =>
      fetch(url, {
        ...init,
        signal: AbortSignal.any([AbortSignal.timeout(50), ...[init?.signal ?? []].flat()]),
      })
    await expect(openChannel(server.url, { store: await emptyStore(), fetch: late })).rejects.toThrow(
      `${server.url} makes no channel: no answer in time`,
    )
  })

  it('names what is wrong with the connection', async () => {
    const server = await scriptedServer(() => ({}))
    await server[Symbol.asyncDispose]()
    await expect(openChannel(server.url, { store: await emptyStore(), fetch })).rejects.toThrow(
      `${server.url} makes no channel: connection refused`,
    )
  })
})
