import { randomUUID } from 'node:crypto'
import { beforeEach, describe, expect, it } from 'vitest'
import { githubDelivery, post } from '../kit/delivery.js'
import { CLIENT, hostVariables, place } from '../kit/place.js'
import { type FullReply, type Received, receiver } from '../kit/receiver.js'
import { fails, prints } from '../kit/run.js'
import { fresh } from './fixture.js'

// A server with GitHub's API that shows no secret of a hook and no last answer, names no hook in a ping, and has a log whose
// entries cannot be sent again: as Vercel's emulator of GitHub.

interface Entry {
  readonly id: number
  readonly guid: string
  readonly event: string
}

let hook: { readonly url: string; readonly events: readonly string[] } | undefined
let log: Entry[]
/** Whether the log is answered 404. */
let isLogMissing: boolean
/** Further members of a ping. */
let pinged: object
const HOOKS = '/api/v3/repos/octo/demo/hooks'

function answer({ method, path, body }: Received): FullReply {
  const asked = `${method} ${path.replace(/\?.*/, '')}`
  const config = { url: hook?.url, content_type: 'json' }
  const shown = hook && { id: 1, active: true, events: hook.events, config }
  switch (asked) {
    case 'GET /api/v3/user':
      return { body: { login: 'octo' } }
    case `GET ${HOOKS}`:
      return { body: shown ? [shown] : [] }
    case `POST ${HOOKS}`: {
      const { config, events }: { config: { url: string }; events: string[] } = JSON.parse(body.toString())
      hook = { url: config.url, events }
      return { status: 201, body: { ...shown, id: 1, active: true, events, config: { url: config.url } } }
    }
    case `PATCH ${HOOKS}/1`:
      return { body: shown ?? {} }
    case `POST ${HOOKS}/1/pings`:
      void ping(hook?.url ?? '')
      return { status: 204 }
    case `GET ${HOOKS}/1/deliveries`:
      return isLogMissing ? { status: 404, body: { message: 'Not Found' } } : { body: log.map(entryOf) }
    default:
      return { status: 404, body: { message: 'Not Found' } }
  }
}

const entryOf = (entry: Entry) => {
  const answered = { redelivery: false, status: 'OK', status_code: 200 }
  return { ...entry, action: null, delivered_at: new Date().toISOString(), ...answered }
}

async function ping(url: string): Promise<void> {
  const id = randomUUID()
  log.unshift({ id: log.length + 1, guid: id, event: 'ping' })
  const body = JSON.stringify({ zen: 'Keep it logically awesome.', ...pinged })
  await post(url, githubDelivery({ id, event: 'ping', body, set: { 'X-GitHub-Hook-ID': undefined } }))
}

const host = fresh(async () => {
  hook = undefined
  log = []
  isLogMissing = false
  pinged = {}
  return receiver(answer)
})
const here = fresh(() => place({ host: 'none', env: hostVariables('github', host.url, CLIENT) }))
const serving = fresh(async () => {
  await here.useToken('gho_plain')
  return here.serve()
})
beforeEach(() => here.run('hook', 'add', 'octo/demo'))

describe('a server like GitHub that shows less', () => {
  it('tests a hook by a ping that does not name it', async () => {
    expect(await here.run('hook', 'test', 'octo/demo')).toEqual(prints('ping of octo/demo arrived: #1\n'))
  })

  it('tests a hook by a ping that names the repository otherwise, by its id in the log', async () => {
    pinged = { repository: { full_name: 'octo/renamed' } }
    expect(await here.run('hook', 'test', 'octo/demo')).toMatchObject({ code: 0, err: '' })
  })

  it('tests a hook by a ping that names the repository otherwise, by its event and time where there is no log', async () => {
    pinged = { repository: { full_name: 'octo/renamed' } }
    isLogMissing = true
    for (const n of [1, 2]) expect((await here.run('hook', 'test', 'octo/demo')).out).toContain(`#${n}\n`)
  })

  it('says why it does not send a delivery again, and counts none that arrived as missing', async () => {
    const arrived = randomUUID()
    await serving.deliver({ id: arrived })
    log = [
      { id: 2, guid: randomUUID(), event: 'push' },
      { id: 1, guid: arrived, event: 'push' },
    ]
    const { code, out } = await here.run('catch-up', 'octo/demo')
    expect([code, out]).toEqual([
      8,
      expect.stringMatching(
        /^caught up with octo\/demo: 1 missing, 0 arrived, 1 could not be had \(push of .*: it was not sent again: GitHub refused: Not Found \(/,
      ),
    ])
  })

  it('says what failed where there is no log, and nothing of what is missing or of how far the log goes back', async () => {
    isLogMissing = true
    const why =
      'The delivery log of the hook of octo/demo cannot be read: GitHub refused: Not Found (no such repository or number, or no access to it). relay hook list octo/demo shows whether the hook is there'
    for (const flags of [[], ['--dry-run']])
      expect(await here.run('catch-up', 'octo/demo', ...flags)).toEqual(fails(8, why))
    expect(await here.run('hook', 'test', 'octo/demo')).toMatchObject({ code: 0, err: '' })
  })
})
