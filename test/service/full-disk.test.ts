import { randomBytes } from 'node:crypto'
import { chmodSync, chownSync, rmSync } from 'node:fs'
import path from 'node:path'
import { expect, it } from 'vitest'
import { fillUp, smallDisk } from '../kit/disk.js'
import { linesOf } from '../kit/journal.js'
import { describeWith } from '../kit/needs.js'
import { place } from '../kit/place.js'
import { ownServer } from '../kit/postgres.js'
import { UNPRIVILEGED } from '../kit/postgres-server.js'

const body = (): string => JSON.stringify(randomBytes(40_000).toString('hex'))

describeWith(['postgres', 'mount'], 'deliveries for a database whose disk is full', () => {
  it('are answered 503, and stored again by itself once there is room', async () => {
    const disk = smallDisk(64)
    await using server = await ownServer({}, disk.wrapper)
    const folder = disk.seenFrom(server.pid)
    chownSync(folder, UNPRIVILEGED, UNPRIVILEGED)
    chmodSync(path.dirname(disk.folder), 0o711)
    // The server's own log of changes is elsewhere: without room for that, the server itself ends.
    await server.run(`CREATE TABLESPACE small LOCATION '${disk.folder}'`)
    await server.run('CREATE DATABASE small TABLESPACE small')
    const RELAY_STORE = server.store.replace(/postgres$/, 'small')
    await using here = await place({ host: 'none', env: { ...server.env, RELAY_STORE } })
    const relay = await here.serve()
    const acknowledged: string[] = []
    const send = async (): Promise<number> => {
      const id = `${acknowledged.length}`
      const { status } = await relay.deliver({ id, body: body() })
      if (status === 200) acknowledged.push(id)
      return status
    }
    for (let i = 0; i < 20; i++) expect(await send()).toBe(200)

    const ballast = fillUp(folder)
    await expect.poll(send).toBe(503)
    expect((await fetch(`${relay.address}/health`)).status).toBe(200)
    await relay.says('its disk is full. Free some space; a running relay then continues by itself')

    rmSync(ballast)
    await expect.poll(send).toBe(200)
    expect((await linesOf(here)).map(({ delivery }) => delivery)).toEqual(acknowledged)
    expect(await relay.stop()).toMatchObject({ code: 0 })
  })
})
