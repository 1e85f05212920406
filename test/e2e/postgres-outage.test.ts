import { chmodSync, chownSync, rmSync } from 'node:fs'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { outcomeOf, startSenders } from '../helpers/chaos.js'
import { emptyFolder } from '../helpers/context.js'
import { githubDelivery, post } from '../helpers/delivery.js'
import { describeWith } from '../helpers/needs.js'
import { type Place, type PostgresServer, startPostgres, UNPRIVILEGED } from '../helpers/postgres.js'
import { startStallingProxy } from '../helpers/stalling-proxy.js'
import { startServiceRelay } from '../helpers/service.js'
import { startTarget } from '../helpers/target.js'
import { fillUp, type HeldDisk, heldDisk, takeSpace } from '../store/ills/disk.js'

/** Seconds for which the server is away; 60 by hand (RELAY_TEST_OUTAGE=60). */
const OUTAGE = Number(process.env['RELAY_TEST_OUTAGE'] ?? 6)
/** Milliseconds in which a relay must work again by itself. */
const RECOVERY = 30_000
const SENDERS = 8

/** A relay under load, forwarding to a target that counts. */
async function underLoad(server: PostgresServer, port = server.port) {
  const target = await startTarget()
  const RELAY_STORE = `postgres://relay@127.0.0.1:${port}/postgres`
  const { url, ...relay } = await startServiceRelay(server, ['--forward', target.url], { RELAY_STORE })
  const senders = startSenders({ count: SENDERS, url: () => url })
  await senders.more(50)
  return {
    url,
    senders,
    /** What became of all deliveries, once some more were acknowledged and nothing waits. */
    async outcome() {
      await senders.more(50)
      await senders.stop()
      const { targets, ...stored } = await outcomeOf(server, senders.acknowledged, [target])
      return { ...stored, ...targets[0], statuses: [...senders.statuses.keys()].toSorted((a, b) => a - b) }
    },
    async [Symbol.asyncDispose]() {
      await senders.stop()
      await relay[Symbol.asyncDispose]()
      await target[Symbol.asyncDispose]()
    },
  }
}

/** Every request had an answer within 6 s, and nothing acknowledged is lost. An attempt whose record failed may be made again. */
const CLEAN = {
  statuses: [200, 503],
  lost: [],
  twice: [],
  missing: [],
  disordered: [],
  repeats: expect.any(Number),
}

/** Waits until the relay refuses deliveries, and says of itself that it is up. */
async function isRefusing(url: string): Promise<void> {
  const send = async () => (await post(`${url}/webhook`, githubDelivery())).status
  await expect.poll(send, { timeout: RECOVERY }).toBe(503)
  expect((await fetch(`${url}/health`)).status).toBe(200)
}

describeWith('postgres', 'a relay whose database', () => {
  it(`is away for ${OUTAGE} s under load answers 503, then continues by itself`, async () => {
    await using server = await startPostgres()
    await using load = await underLoad(server)
    await server.stop('SIGQUIT')
    const before = load.senders.acknowledged.size
    await isRefusing(load.url)
    await sleep(OUTAGE * 1000)
    // An answer may have been on its way.
    expect(load.senders.acknowledged.size - before).toBeLessThanOrEqual(SENDERS)
    await server.start()
    expect(await load.outcome()).toEqual(CLEAN)
  }, 240_000)

  it('is behind a network that swallows packets answers 503 in time, then continues by itself', async () => {
    await using server = await startPostgres()
    await using proxy = await startStallingProxy(server.port)
    await using load = await underLoad(server, proxy.port)
    for (const stall of [() => proxy.stall(), () => proxy.forget()]) {
      stall()
      await isRefusing(load.url)
      proxy.resume()
      await load.senders.more(50)
    }
    expect(await load.outcome()).toEqual(CLEAN)
  }, 240_000)
})

/** A server whose data, or whose log of changes, is on a small disk of its own. */
async function startOn(disk: HeldDisk, full: 'data' | 'log'): Promise<PostgresServer> {
  const folder = emptyFolder()
  if (process.getuid?.() === 0) chownSync(folder, UNPRIVILEGED, UNPRIVILEGED)
  chmodSync(folder, 0o700)
  const on = (name: 'data' | 'log'): string => path.join(name === full ? disk.folder : folder, name)
  const place: Place = { data: on('data'), log: on('log'), wrapper: disk.wrapper }
  return startPostgres({ min_wal_size: '32MB', max_wal_size: '32MB', autovacuum: 'off' }, place)
}

describeWith(['postgres', 'mount'], "a relay whose database's disk is full", () => {
  it.each([
    ['data', 64],
    ['log', 72],
  ] as const)(
    'with its %s: it answers 503, then continues by itself',
    async (full, size) => {
      await using disk = await heldDisk(size, UNPRIVILEGED)
      await using server = await startOn(disk, full)
      await using load = await underLoad(server)
      const folder = disk.seenFrom(undefined)
      const ballast = takeSpace(folder, 0)
      fillUp(folder)
      await isRefusing(load.url)
      rmSync(ballast)
      // Without room for its log the server ends itself, and is started again by what supervises it.
      if (full === 'log') {
        await server.stop('SIGQUIT')
        await server.start()
      }
      expect(await load.outcome()).toEqual(CLEAN)
    },
    240_000,
  )
})
