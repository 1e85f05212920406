import { describe, expect, it } from 'vitest'
import {
  createInstanceRecord,
  prove,
  publishInstance,
  type InstanceRecord,
} from '../../../src/instance/running.js'
import { Tokens } from '../../../src/tokens/tokens.js'
import { scriptedServer, type Answer } from '../../helpers/scripted-server.js'
import { profileStore, type Shell, startAlone, startServed, USER } from '../rig.js'

const COMMENT = ['comment', 'octo/demo#1', 'hello']

/** Has the profile say that this process serves it at `url`. */
function claim(shell: Shell, url: string, providerUrl: string): InstanceRecord {
  const place = { url, publicUrl: url, provider: 'sandbox', providerUrl }
  const record = createInstanceRecord({ pid: process.pid, ...place }, Date.now())
  const more = {
    profile: 'default',
    store: 'file',
    sandbox: false,
    secretPrint: '',
    madeSecret: null,
  } as const
  publishInstance(shell.home, { ...record, ...more })
  return record
}

describe('the running instance', () => {
  it('is asked at its address, and nothing is done in this process', async () => {
    await using served = await startServed()
    await using watched = await scriptedServer(({ path, headers }) => {
      if (path === '/health') return proof(instance, headers)
      return { body: { ok: true, id: 7, url: 'https://git.example/octo/demo/issues/1#issuecomment-7' } }
    })
    await served.serving[Symbol.asyncDispose]()
    const instance = claim(served.shell, watched.url, served.sandbox.url)
    const token = (await tokenOf(served.shell)) ?? ''
    expect(await served.shell.run(COMMENT)).toEqual({
      code: 0,
      out: 'https://git.example/octo/demo/issues/1#issuecomment-7\n',
      err: '',
    })
    const asked = watched.received.map(({ path, headers }) => [path, headers.authorization])
    expect(asked).toEqual([
      ['/health', undefined],
      ['/api/comment', `Bearer ${token}`],
    ])
    // Where it has proved itself.
    expect(watched.connections).toBe(1)
  })

  it('that breaks the connection may have done it, exit 1', async () => {
    await using alone = await startAlone()
    await using broken = await scriptedServer(({ path, headers }): Answer =>
      path === '/health' ? proof(instance, headers) : 'reset',
    )
    const instance = claim(alone.shell, broken.url, alone.sandbox.url)
    expect(await alone.shell.run(COMMENT)).toEqual({
      code: 1,
      out: '',
      err: `error: relay at ${broken.url} gave no complete answer (connection closed before an answer); the request may have been carried out all the same\n`,
    })
    expect(broken.received.map(({ path }) => path)).toEqual(['/health', '/api/comment'])
    expect(alone.sandbox.comments).toEqual([])
  })
})

describe('the bearer', () => {
  it('is never sent to another program on the port of the instance', async () => {
    await using alone = await startAlone()
    await using squatter = await scriptedServer(() => ({
      headers: { 'X-Relay-Instance': '0'.repeat(64) },
      body: { ok: true, id: 1, url: 'https://evil.example' },
    }))
    claim(alone.shell, squatter.url, alone.sandbox.url)
    const ran = await alone.shell.run(COMMENT)
    const id = alone.sandbox.comments.at(-1)?.id
    expect(ran).toEqual({
      code: 0,
      out: `${alone.sandbox.url}/octo/demo/issues/1#issuecomment-${id}\n`,
      err: '',
    })
    expect(squatter.received.map(({ method, path }) => [method, path])).toEqual([['GET', '/health']])
    expect(JSON.stringify(squatter.received)).not.toContain(alone.grant.access_token)
  })
})

function proof(instance: InstanceRecord, headers: Readonly<Record<string, unknown>>): Answer {
  return { headers: { 'X-Relay-Instance': prove(instance, String(headers['x-relay-challenge'])) } }
}

async function tokenOf(shell: Shell): Promise<string | undefined> {
  await using store = await profileStore(shell)
  return (await new Tokens(store).get(USER))?.accessToken
}
