import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { CLIENT, hostVariables, type Place, place } from '../kit/place.js'
import { receiver } from '../kit/receiver.js'
import { fails, prints } from '../kit/run.js'

describe('relay merge --if-green', () => {
  let here: Place
  let token: string
  beforeEach(async () => {
    here = await place({ signedIn: true })
    token = await here.sandbox.token()
  })
  afterEach(() => here[Symbol.asyncDispose]())

  const head = (): string => here.sandbox.issue('octo/demo', 2)?.pull?.head.sha ?? ''
  const call = async (method: string, path: string, body: object): Promise<void> => {
    const response = await fetch(`${here.sandbox.url}/api/v3/repos/octo/demo${path}`, {
      method,
      headers: { authorization: `Bearer ${token}` },
      body: JSON.stringify(body),
    })
    expect(response.status).toBe(201)
  }
  const report = (context: string, state: string): Promise<void> =>
    call('POST', `/statuses/${head()}`, { context, state })
  const merge = (...more: string[]) => here.run('merge', 'octo/demo#2', '--if-green', ...more)
  const notMerged = (why: string) =>
    fails(3, `octo/demo#2 is not merged: its head ${head().slice(0, 7)} ${why}`)

  it('merges a head whose checks have all succeeded', async () => {
    await report('build', 'success')
    const ran = await merge()
    const made = here.sandbox.issue('octo/demo', 2)?.pull?.merge
    expect(ran).toEqual(prints(`${made?.sha}\n`))
  })

  it('names what failed, what has not finished, and that there is none, exit 3', async () => {
    const none = 'has no checks and no statuses. They may not have begun; try again later'
    expect(await merge()).toEqual(notMerged(none))
    await report('build', 'success')
    await report('lint', 'pending')
    expect(await merge()).toEqual(notMerged('has not finished lint (pending)'))
    await report('lint', 'failure')
    expect(await merge()).toEqual(notMerged('has not succeeded in lint (failure)'))
    const json = await merge('--json')
    expect({ code: json.code, out: json.out }).toEqual({ code: 3, out: '' })
    expect(JSON.parse(json.err)).toMatchObject({ type: 'error', code: 'checks_failed' })
    expect(here.sandbox.merges).toHaveLength(0)
    await report('lint', 'success')
    expect(await merge()).toMatchObject({ code: 0 })
  })

  it('does not merge another head than --match-head, exit 8', async () => {
    await report('build', 'success')
    expect(await merge('--match-head', 'a'.repeat(40))).toEqual(
      fails(8, `octo/demo#2 is not merged: its head is ${head()}`),
    )
    expect(await merge('--match-head', head().toUpperCase())).toMatchObject({ code: 0 })
  })

  it('reads the checks with --dry-run too, and merges nothing', async () => {
    const none = 'has no checks and no statuses. They may not have begun; try again later'
    expect(await merge('--dry-run')).toEqual(notMerged(none))
    await report('build', 'success')
    const { code, out, err } = await merge('--dry-run', '--method', 'squash')
    expect({ code, out, err }).toEqual({
      code: 0,
      out: '',
      err: expect.stringContaining(
        `would merge octo/demo#2 (squash) if its head is still ${head()}, whose checks and statuses have all succeeded, at http`,
      ),
    })
    const json = JSON.parse((await merge('--dry-run', '--json')).out)
    expect(json.request).toEqual({ owner: 'octo', repo: 'demo', pullNumber: 2, sha: head() })
    expect(await merge('--dry-run', '--match-head', 'a'.repeat(40))).toMatchObject({ code: 8 })
    expect(here.sandbox.merges).toHaveLength(0)
  })

  it('merges nothing when the checks cannot be read, exit 8', async () => {
    here.sandbox.faults.next('checks', '502')
    const { code, err } = await merge()
    expect({ code, err }).toEqual({ code: 8, err: 'error: The sandbox failed (502)\n' })
    expect(here.sandbox.merges).toHaveLength(0)
  })
})

describe('a head that moves after its checks were read', () => {
  it('is not merged: the merge names the head that was checked', async () => {
    const sha = 'ab'.repeat(20)
    await using host = await receiver(({ method, path }) => {
      if (method === 'PUT') return { status: 409, body: { message: 'Head branch was modified.' } }
      if (path.includes('/pulls/')) return { body: { head: { sha } } }
      return { body: { login: 'octo', check_runs: [], statuses: [{ context: 'build', state: 'success' }] } }
    })
    await using here = await place({ host: 'none', env: hostVariables('github', host.url, CLIENT) })
    await here.useToken('gho_token')
    expect(await here.run('merge', 'octo/demo#2', '--if-green')).toEqual(
      fails(8, 'GitHub refused: Head branch was modified.'),
    )
    const writes = host.received.filter(({ method }) => method === 'PUT')
    expect(writes.map(({ body }) => JSON.parse(body.toString()))).toEqual([{ sha }])
  })
})
