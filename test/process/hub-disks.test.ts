import { cpSync, rmSync } from 'node:fs'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { fillUp, keptDisk } from '../kit/disk.js'
import { emptyFolder } from '../kit/folder.js'
import { hub, joining } from '../kit/hub.js'
import { fetched, idsIn, load, wrong } from '../kit/hub-load.js'
import { describeWith } from '../kit/needs.js'
import { place } from '../kit/place.js'

const CONNECTED = { type: 'tunnel', state: 'connected', roundTrip: 'ok' }
const FULL = /the disk is (?:almost )?full\. Free some space; a running relay then continues by itself/
/** MiB: 16 stay free for relay, and the load takes some more. */
const SIZE = 64

describeWith(
  ['Linux', 'mount'],
  'what a hub has answered 200 is in the journal of the workstation, once and in order',
  () => {
    it('where the disk of the workstation is full to its last byte for a while: all of it waits at the hub', async () => {
      await using disk = await keptDisk(SIZE)
      await using server = await hub({ built: true })
      await using here = await place({ host: 'none', env: { RELAY_HOME: disk.folder } })
      const env = { ...here.env, ...(await joining(server)) }
      const relay = await here.serveWith({ wrapper: disk.wrapper, env }, '--tunnel')
      const { url } = await relay.object(CONNECTED)
      const sending = load(String(url), { every: 50 })
      await sending.more(40)
      const ballast = fillUp(disk.seen)
      await relay.says(FULL)
      await sending.more(200)
      rmSync(ballast)
      await sending.more(40)
      const answered = await sending.stop()
      await fetched(server)
      await relay.stop('SIGKILL')
      const RELAY_HOME = emptyFolder()
      cpSync(path.join(disk.seen, 'default'), path.join(RELAY_HOME, 'default'), { recursive: true })
      expect(wrong(await idsIn({ env: { ...here.env, RELAY_HOME } }), answered)).toEqual([])
      expect([...sending.statuses]).toEqual([200])
    })

    it('where the disk of the hub is full to its last byte for a while: its senders get 503 meanwhile', async () => {
      await using disk = await keptDisk(SIZE)
      await using server = await hub({ wrapper: disk.wrapper, env: { RELAY_HOME: disk.folder } })
      await using here = await place({ host: 'none' })
      const env = { ...here.env, ...(await joining(server)) }
      const relay = await here.serveWith({ built: true, env }, '--tunnel')
      const { url } = await relay.object(CONNECTED)
      const sending = load(String(url), { every: 50 })
      await sending.more(40)
      const ballast = fillUp(disk.seen)
      while (!sending.statuses.has(503)) await sleep(10)
      await server.says(FULL)
      const meanwhile = sending.count()
      await sleep(3000)
      expect(sending.count()).toBe(meanwhile)
      rmSync(ballast)
      await sending.more(40)
      const answered = await sending.stop()
      await fetched(server)
      expect(wrong(await idsIn(here), answered)).toEqual([])
      expect([...sending.statuses]).toEqual([200, 503])
    })
  },
)
