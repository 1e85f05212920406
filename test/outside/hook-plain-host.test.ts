import { randomUUID } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { SECRET, sign } from '../kit/delivery.js'
import { hostVariables, type Place, place, type Serving } from '../kit/place.js'
import { type FullReply, type Received, type Receiver, receiver } from '../kit/receiver.js'
import { fails, prints } from '../kit/run.js'

// A server with GitHub's API that shows no secret of a hook and no last answer, names no hook in a ping, and has a log whose
// entries cannot be sent again: as Vercel's emulator of GitHub.

interface Entry {
  readonly id: number
  readonly guid: string
  readonly event: string
}

let host: Receiver
let here: Place
let serving: Serving
let hook: { readonly url: string; readonly events: readonly string[] } | undefined
let log: Entry[]
/** Whether the log is answered 404. */
let isLogMissing: boolean
/** Further members of a ping. */
let pinged: object
const HOOKS = '/api/v3/repos/octo/demo/hooks'

function answer({ method, path, body }: Received): FullReply {
  const asked = `${method} ${path.replace(/\?.*/, '')}`
  const shown = hook && {
    id: 1,
    active: true,
    events: hook.events,
    config: { url: hook.url, content_type: 'json' },
  }
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

const entryOf = (entry: Entry) => ({
  ...entry,
  action: null,
  delivered_at: new Date().toISOString(),
  redelivery: false,
  status: 'OK',
  status_code: 200,
})

async function ping(url: string): Promise<void> {
  const body = JSON.stringify({ zen: 'Keep it logically awesome.', ...pinged })
  const guid = randomUUID()
  log.unshift({ id: log.length + 1, guid, event: 'ping' })
  const headers = {
    'content-type': 'application/json',
    'x-github-event': 'ping',
    'x-github-delivery': guid,
    'x-hub-signature-256': sign(SECRET, body),
  }
  await fetch(url, { method: 'POST', headers, body })
}

beforeEach(async () => {
  hook = undefined
  log = []
  isLogMissing = false
  pinged = {}
  host = await receiver(answer)
  here = await place({ host: 'none', env: hostVariables('github', host.url, { id: 'id', secret: 'secret' }) })
  await here.useToken('gho_plain')
  serving = await here.serve()
  await here.run('hook', 'add', 'octo/demo')
})
afterEach(async () => {
  await here[Symbol.asyncDispose]()
  await host[Symbol.asyncDispose]()
})

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
    for (const n of [1, 2])
      expect(await here.run('hook', 'test', 'octo/demo')).toEqual(
        prints(`ping of octo/demo arrived: #${n}\n`),
      )
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
    for (const flags of [[], ['--dry-run']]) {
      const ran = await here.run('catch-up', 'octo/demo', ...flags)
      expect(ran).toEqual(
        fails(
          8,
          'The delivery log of the hook of octo/demo cannot be read: GitHub refused: Not Found (no such repository or number, or no access to it). relay hook list octo/demo shows whether the hook is there',
        ),
      )
    }
    expect(await here.run('hook', 'test', 'octo/demo')).toMatchObject({ code: 0, err: '' })
  })
})
