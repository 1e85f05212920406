import { expect, it } from 'vitest'
import { CLIENT, hostVariables, place, USER } from '../kit/place.js'
import { receiver } from '../kit/receiver.js'

const REDIRECTS = [301, 302, 303, 307, 308]
/** Parts of an address that can hold secrets. */
const CANARY = 'c4nary'
const TOKEN = 'gho_that-is-for-one-host-alone'

/** Where a redirect leads, by its `Location`: to another server, another path of the same, or nowhere that can be named. */
const LOCATIONS: Readonly<Record<string, (other: string, own: string) => [location: string, shown: string]>> =
  {
    absolute: (other) => [
      `${other.replace('//', `//ada:${CANARY}@`)}/hooks/in?token=${CANARY}#${CANARY}`,
      `${other}/hooks/in`,
    ],
    'without a scheme': (other) => [`${other.replace('http:', '')}/x?${CANARY}`, `${other}/x`],
    relative: (_, own) => [`/hooks/?token=${CANARY}`, `${own}/hooks/`],
    'of a control character': (_, own) => [`/a\tb?${CANARY}`, `${own}/ab`],
    'with letters that are not ASCII': (_, own) => ['/\u00fc', `${own}/%C3%BC`],
  }

const ROWS = REDIRECTS.flatMap((status) => Object.keys(LOCATIONS).map((kind) => [status, kind] as const))

it('of a target are not followed, and the attempt names where to', async () => {
  await using other = await receiver()
  await using target = await receiver()
  const expected = ROWS.map(([status, kind]) => {
    const [location, shown] = LOCATIONS[kind]?.(other.url, target.url) ?? []
    target.answers({ status, headers: { location: location ?? '' } })
    return {
      status,
      outcome: 'refused',
      error: `answered ${status}, a redirect to ${shown} that is not followed: forward there instead`,
    }
  })
  await using here = await place({ host: 'none' })
  const relay = await here.serve('--forward', target.url)
  for (const _ of ROWS) await relay.deliver()
  const attempts = await relay.objects({ type: 'attempt' }, ROWS.length)
  expect(attempts.map(({ status, outcome, error }) => ({ status, outcome, error }))).toEqual(expected)
  expect(attempts.map(({ reason }) => reason)).toEqual(expected.map(({ error }) => error))
  const shown = await here.run('show', '1')
  expect(shown.out).toContain(`${other.url}/hooks/in`)
  expect(relay.out + relay.err + shown.out.replace(/location.*/gi, '')).not.toContain(CANARY)
  expect(other.received).toEqual([])
})

it.each(REDIRECTS)(
  '%i of a code host to another is not followed with the token, and named',
  async (status) => {
    await using other = await receiver()
    const location = `${other.url}/api/moved?token=${CANARY}`
    await using host = await receiver(({ path }) =>
      path.endsWith('/user')
        ? { headers: { 'X-OAuth-Scopes': 'repo' }, body: { login: USER, id: 1 } }
        : { status, headers: { location } },
    )
    await using here = await place({ host: 'none', env: hostVariables('github', host.url, CLIENT) })
    await here.useToken(TOKEN)
    await here.serve()
    const { code, err } = await here.run('comment', 'octo/demo#1', 'hello')
    expect(code).not.toBe(0)
    expect(err.replaceAll(/\s+/g, ' ')).toContain(
      `a redirect that is not followed (${status}) to ${other.url}/api/moved`,
    )
    expect(err).not.toContain(CANARY)
    expect(other.received).toEqual([])
  },
)

it.each(REDIRECTS)('%i of a tunnel is not followed, and named', async (status) => {
  await using other = await receiver()
  await using server = await receiver({ status, headers: { location: `${other.url}/c?token=${CANARY}` } })
  await using here = await place({ host: 'none' })
  const relay = await here.serve('--tunnel', `${server.url}/channel`)
  const { why } = await relay.object({ type: 'tunnel', state: 'waiting' })
  expect(why).toBe(
    `the server answers ${status}: it redirects to ${other.url}/c, which is not followed. If it has moved there, set --tunnel to that`,
  )
  expect(other.received).toEqual([])
})
