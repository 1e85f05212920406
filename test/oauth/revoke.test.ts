import { describe, expect, it } from 'vitest'
import { RelayError } from '../../src/base/errors.js'
import { Secret } from '../../src/base/secret.js'
import { revokeEverywhere, type RevokeOptions, type RevokeParts } from '../../src/oauth/revoke.js'
import { createProvider } from '../../src/providers/open.js'
import { scriptedServer, type Answer } from '../helpers/scripted-server.js'
import { createRig, MINUTE, NOW } from './rig.js'

const CLIENT = { id: 'relay', secret: new Secret('s3cret') }

/** Alice, signed in at a GitHub that gives this answer, is revoked. */
async function revoked(answer: Answer, changes: Partial<RevokeParts> = {}, options: RevokeOptions = {}) {
  await using server = await scriptedServer(() => answer)
  await using rig = await createRig()
  const provider = createProvider({
    name: 'github',
    url: server.url,
    ...(answer === 'silence' && { timeLimit: 200 }),
  })
  const signIn = { accessToken: 'gho_1', refreshToken: 'ghr_1', expiresAt: NOW + MINUTE }
  await rig.tokens.save('alice', { ...signIn, origin: provider.origin })
  const parts = { provider, client: CLIENT, tokens: rig.tokens, ...changes }
  const result = await revokeEverywhere(parts, 'alice', options)
  return { result, asked: server.received.length, store: await rig.contents() }
}

const outcome = (upstream: unknown, asked: number) => ({
  result: { removed: true, upstream },
  asked,
  store: {},
})

describe('revoking', () => {
  it.each([204, 404, 422])('here and at the provider, which responds %i', async (status) => {
    expect(await revoked({ status })).toEqual(outcome('revoked', 1))
  })

  it.each<[Answer, RelayError]>([
    [
      { status: 401, body: { message: 'Bad credentials' } },
      new RelayError('forbidden', 'GitHub refused: it does not know this client id and secret'),
    ],
    [
      { status: 403, body: { message: 'no s3cret, no gho_1' } },
      new RelayError('forbidden', 'GitHub refused: no [secret], no [secret]'),
    ],
    [
      'silence',
      new RelayError(
        'provider_timeout',
        'GitHub did not answer within 0.2 s; the request may have been carried out all the same',
      ),
    ],
    [
      { status: 502 },
      new RelayError(
        'provider_failed',
        'GitHub failed (502); the request may have been carried out all the same',
      ),
    ],
  ])('is done here also when the provider answers %j, which is reported', async (answer, error) => {
    const { result, ...rest } = await revoked(answer)
    const { failed } = Object(result.upstream)
    expect({ ...rest, removed: result.removed }).toEqual({ asked: 1, store: {}, removed: true })
    expect([failed.kind, failed.message, failed.exitCode]).toEqual([error.kind, error.message, 8])
  })

  it('reports the cancelled request, and is done here', async () => {
    const signal = AbortSignal.abort(new RelayError('cancelled', 'Interrupted'))
    const { result, store } = await revoked({ status: 204 }, {}, { signal })
    expect([Object(result.upstream).failed.kind, store]).toEqual(['cancelled', {}])
  })

  it('is done only here with the option local', async () => {
    expect(await revoked({ status: 204 }, {}, { local: true })).toEqual(outcome('skipped', 0))
  })

  it('sends nothing to another provider than the token’s', async () => {
    await using other = await scriptedServer(() => ({ status: 204 }))
    const provider = createProvider({ name: 'github', url: other.url })
    expect(await revoked({ status: 204 }, { provider })).toEqual(outcome('elsewhere', 0))
    expect(other.received).toEqual([])
  })

  it('reports a missing client', async () => {
    expect(await revoked({ status: 204 }, { client: undefined })).toEqual(outcome('no client', 0))
  })

  it('reports a provider that cannot revoke, such as Gitea', async () => {
    await using rig = await createRig()
    const provider = createProvider({ name: 'gitea', url: rig.server.url })
    await rig.tokens.save('alice', { accessToken: 't', expiresAt: NOW + 1, origin: provider.origin })
    const parts = { provider, client: CLIENT, tokens: rig.tokens }
    expect(await revokeEverywhere(parts, 'alice')).toEqual({ removed: true, upstream: 'unsupported' })
    expect(await rig.contents()).toEqual({})
  })

  it('removes a remaining refresh token, and reports when there was nothing', async () => {
    await using rig = await createRig()
    const provider = createProvider({ name: 'github', url: rig.server.url })
    const parts = { provider, client: CLIENT, tokens: rig.tokens }
    const signIn = { accessToken: 't', refreshToken: 'r', expiresAt: NOW + 1, origin: provider.origin }
    await rig.tokens.save('alice', signIn)
    rig.time.now = NOW + 1
    expect(await revokeEverywhere(parts, 'alice')).toEqual({ removed: true, upstream: 'skipped' })
    expect(await rig.contents()).toEqual({})
    expect(await revokeEverywhere(parts, 'alice')).toEqual({ removed: false, upstream: 'skipped' })
  })

  it('sends nothing to the provider when the store fails', async () => {
    await using rig = await createRig()
    await using server = await scriptedServer(() => ({ status: 204 }))
    const provider = createProvider({ name: 'github', url: server.url })
    await rig.tokens.save('alice', { accessToken: 't', expiresAt: NOW + 1, origin: provider.origin })
    rig.broken.add('update')
    await expect(
      revokeEverywhere({ provider, client: CLIENT, tokens: rig.tokens }, 'alice'),
    ).rejects.toMatchObject({ kind: 'storage' })
    expect(server.received).toEqual([])
  })
})
