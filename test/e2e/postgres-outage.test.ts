import { chmodSync, chownSync, rmSync } from 'node:fs'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { emptyFolder } from '../helpers/context.js'
import { githubDelivery, post } from '../helpers/delivery.js'
import { describeWith } from '../helpers/needs.js'
import { type Place, type PostgresServer, startPostgres, UNPRIVILEGED } from '../helpers/postgres.js'
import { Program } from '../helpers/program.js'
import { haveReached, type Senders, startSenders } from '../helpers/senders.js'
import { startStallingProxy } from '../helpers/stalling-proxy.js'
import { serviceEnvironment } from '../helpers/service.js'
import { startTarget, type TargetServer } from '../helpers/target.js'
import { fillUp, type HeldDisk, heldDisk, takeSpace } from '../store/ills/disk.js'

/** Seconds for which the server is away; 60 by hand (RELAY_TEST_OUTAGE=60). */
const OUTAGE = Number(process.env['RELAY_TEST_OUTAGE'] ?? 6)
/** Milliseconds in which a relay must work again by itself. */
const RECOVERY = 30_000
/** A write has 4 s, and the machine may be busy. */
const LONGEST_ANSWER = 9000
const SENDERS = 8

/** A relay under load, forwarding to a target that counts. */
async function underLoad(server: PostgresServer, port = server.port) {
  const target = await startTarget()
  const env = serviceEnvironment(server, { RELAY_STORE: `postgres://relay@127.0.0.1:${port}/postgres` })
  const program = new Program(['serve', '--port', '0', '--json', '--forward', target.url], env)
  const url = await program.url()
  const senders = startSenders(url, SENDERS)
  await senders.more(50, RECOVERY)
  return {
    url,
    target,
    senders,
    async [Symbol.asyncDispose]() {
      await senders.stop()
      await program[Symbol.asyncDispose]()
      await target[Symbol.asyncDispose]()
    },
  }
}

/** Waits until the relay refuses deliveries, and says of itself that it is up. */
async function isRefusing(url: string): Promise<void> {
  const send = async () => (await post(`${url}/webhook`, githubDelivery())).status
  await expect.poll(send, { timeout: RECOVERY }).toBe(503)
  expect((await fetch(`${url}/health`)).status).toBe(200)
}

/** Nothing acknowledged is lost, and what came was stored once. */
async function nothingIsLost(senders: Senders, target: TargetServer): Promise<void> {
  await senders.more(50, RECOVERY)
  await senders.stop()
  await haveReached(target, senders.acknowledged, 2 * RECOVERY)
  expect([...senders.statuses].toSorted((one, other) => one - other)).toEqual([200, 503])
  expect(senders.slowest()).toBeLessThan(LONGEST_ANSWER)
}

/** Whether each delivery is stored once, under consecutive numbers. */
async function stored(server: PostgresServer): Promise<unknown> {
  const { rows } = await server.run(
    'SELECT count(*) = count(DISTINCT delivery_id) AS once, count(*) = max(n) AS complete FROM relay_default.delivery',
  )
  return rows[0]
}

describeWith('postgres', 'a relay whose database', () => {
  it(`is away for ${OUTAGE} s under load answers 503, then continues by itself`, async () => {
    await using server = await startPostgres()
    await using load = await underLoad(server)
    await server.stop('SIGQUIT')
    const before = load.senders.acknowledged.length
    await isRefusing(load.url)
    await sleep(OUTAGE * 1000)
    // An answer may have been on its way.
    expect(load.senders.acknowledged.length - before).toBeLessThanOrEqual(SENDERS)
    await server.start()
    await nothingIsLost(load.senders, load.target)
    expect(await stored(server)).toEqual({ once: true, complete: true })
  }, 240_000)

  it('is behind a network that swallows packets answers 503 in time, then continues by itself', async () => {
    await using server = await startPostgres()
    await using proxy = await startStallingProxy(server.port)
    await using load = await underLoad(server, proxy.port)
    for (const stall of [() => proxy.stall(), () => proxy.forget()]) {
      stall()
      await isRefusing(load.url)
      proxy.resume()
      await load.senders.more(50, RECOVERY)
    }
    await nothingIsLost(load.senders, load.target)
    expect(await stored(server)).toEqual({ once: true, complete: true })
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
      await nothingIsLost(load.senders, load.target)
      expect(await stored(server)).toEqual({ once: true, complete: true })
    },
    240_000,
  )
})
