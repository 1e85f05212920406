import { randomBytes } from 'node:crypto'
import { cpSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { expect, it } from 'vitest'
import type { Answer } from '../kit/delivery.js'
import { fillUp, keptDisk, limited, readOnly, smallDisk, unlimit } from '../kit/disk.js'
import { emptyFolder } from '../kit/folder.js'
import { entriesOf } from '../kit/journal.js'
import { describeWith } from '../kit/needs.js'
import { type Place, place } from '../kit/place.js'
import { receiver } from '../kit/receiver.js'

const OK: Answer = { status: 200, type: 'application/json', body: '{"ok":true}' }
const NOT_STORED: Answer = {
  status: 503,
  type: 'application/json',
  body: '{"error":"Delivery could not be stored"}',
}

const body = (): string => JSON.stringify(randomBytes(40_000).toString('hex'))

/** All stored deliveries: ids and bodies in order. */
async function stored(here: Pick<Place, 'env'>): Promise<[id: string, body: string][]> {
  return (await entriesOf(here)).map(({ deliveryId, body }) => [deliveryId, body.toString()])
}

// Raising the limit of another process needs Linux's prlimit. The store behaves the same elsewhere.
describeWith('Linux', 'deliveries on a full disk', () => {
  it('are answered 503, leave stored ones intact, and are stored again once there is room', async () => {
    await using here = await place({ host: 'none' })
    const bodies: string[] = []
    const program = await here.serveWith({ wrapper: limited(4 * 1_048_576) })
    const send = (id: string, body: string): Promise<Answer> => program.deliver({ id, body })

    for (let answer = OK; answer.status === 200 && bodies.length < 200;) {
      bodies.push(body())
      answer = await send(`${bodies.length}`, bodies.at(-1) ?? '')
      expect([OK, NOT_STORED]).toContainEqual(answer)
    }
    const lastId = `${bodies.length}`
    const refused = await Promise.all(Array.from({ length: 8 }, (_, i) => send(`more-${i}`, body())))
    expect(refused).toEqual(refused.map(() => NOT_STORED))
    expect(await (await fetch(`${program.address}/health`)).text()).toBe('{"status":"ok"}')
    const before = bodies.slice(0, -1).map((body, i) => [`${i + 1}`, body])
    expect(before.length).toBeGreaterThan(10)
    expect(await stored(here)).toEqual(before)

    unlimit(program.pid)
    expect(await send(lastId, bodies.at(-1) ?? '')).toEqual(OK)
    await program.stop('SIGKILL')
    expect(await stored(here)).toEqual([...before, [lastId, bodies.at(-1)]])
  })
})

describeWith(['Linux', 'mount'], 'deliveries on a disk that another program fills to its last byte', () => {
  it('are answered 503, and stored again by itself once that is freed', async () => {
    const disk = smallDisk(64)
    await using here = await place({ host: 'none', env: { RELAY_HOME: disk.folder } })
    const program = await here.serveWith({ wrapper: disk.wrapper })
    const home = disk.seenFrom(program.pid)
    const before = Array.from({ length: 20 }, (_, i): [string, string] => [`${i}`, body()])
    for (const [id, body] of before) expect(await program.deliver({ id, body })).toEqual(OK)

    const ballast = fillUp(home)
    const refused = await Promise.all(before.map(() => program.deliver({ body: body() })))
    expect(refused).toEqual(refused.map(() => NOT_STORED))
    expect(await (await fetch(`${program.address}/health`)).text()).toBe('{"status":"ok"}')
    await program.says(
      /the disk is (?:almost )?full\. Free some space; a running relay then continues by itself/,
    )

    rmSync(ballast)
    const last = body()
    await expect.poll(() => program.deliver({ id: 'last', body: last })).toEqual(OK)
    // As a crash would leave it. SQLite does not find the disk from outside.
    const RELAY_HOME = emptyFolder()
    cpSync(path.join(home, 'default'), path.join(RELAY_HOME, 'default'), { recursive: true })
    expect(await stored({ env: { ...here.env, RELAY_HOME } })).toEqual([...before, ['last', last]])
    expect(await program.stop()).toMatchObject({ code: 0, signal: null })
  })

  it('are expected to be refused where too little is free at the start', async () => {
    const disk = smallDisk(12)
    await using here = await place({ host: 'none', env: { RELAY_HOME: disk.folder } })
    const program = await here.serveWith({ wrapper: disk.wrapper })
    await program.says('is almost full: deliveries are refused until 16 MiB are free')
    expect(await program.deliver()).toEqual(NOT_STORED)
  })
})

describeWith(
  ['Linux', 'mount'],
  'relay serve, killed, and started again where nothing can be written',
  () => {
    /** Starts in places that take no more from when `close` was called. */
    const places = {
      'a full disk': async () => {
        const disk = await keptDisk(64)
        const close = (): void => void fillUp(disk.seen)
        return { ...disk, env: { RELAY_HOME: disk.folder }, close, closed: disk.wrapper }
      },
      'a read-only disk': async () => {
        const folder = emptyFolder()
        const closed = readOnly(folder)
        const close = (): void => {}
        return {
          env: { RELAY_HOME: folder },
          seen: folder,
          wrapper: ['env'],
          close,
          closed,
          [Symbol.asyncDispose]: async () => {},
        }
      },
    }

    it.each(
      Object.entries(places).flatMap(([name, open]) =>
        ['', '--sandbox'].map((flag) => ({
          name,
          flag,
          flags: flag === '' ? [] : [flag, '--sandbox-port', '0'],
          open,
        })),
      ),
    )('on $name: forwards what waits and answers 503 $flag', async ({ flags, open }) => {
      await using disk = await open()
      await using away = await receiver('hang')
      await using here = await place({ host: 'none', env: disk.env })
      const first = await here.serveWith({ wrapper: disk.wrapper }, ...flags, '--forward', away.url)
      expect(await first.deliver({ body: '"waits"' })).toEqual(OK)
      await away.has(1)
      // A relay that is stopped removes its log, which a disk without a free byte then has no room for.
      await first.stop('SIGKILL')
      // Of a start that migrated, which this one would remove.
      const profile = path.join(disk.seen, flags[0] === '--sandbox' ? 'sandbox' : 'default')
      writeFileSync(path.join(profile, 'relay.db.version-10'), '')
      disk.close()

      const second = await here.serveWith({ wrapper: disk.closed }, ...flags, '--forward', away.url)
      await away.has(2)
      // A sandbox sends a ping of its own when it starts, which can be the first.
      const [before, after] = away.received.map(({ body }) => body.toString())
      expect(after).toBe(before)
      expect(await second.deliver()).toEqual(NOT_STORED)
      expect(await (await fetch(`${second.address}/health`)).text()).toBe('{"status":"ok"}')
    })
  },
)

describeWith(['Linux', 'mount'], 'relay doctor', () => {
  it('says that nothing can be written, and why', async () => {
    await using here = await place({ host: 'none' })
    await (await here.serve()).stop()
    const ended = async (wrapper: readonly string[]): Promise<string> =>
      (await here.startWith({ wrapper }, 'doctor').ended).out
    expect(await ended(readOnly(here.home))).toMatch(/^x {3}database .*: its file system is read-only/m)
    const full = await ended(limited(40_960))
    expect(full).toMatch(/^x {3}database .*: the disk is full.*\n +fix: ls -ld .*; df -h /m)
  })
})
