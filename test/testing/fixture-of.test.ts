import { describe, expect, it } from 'vitest'
import { fixtureOf, startRelay } from '../../src/testing/index.js'

describe('fixtureOf', () => {
  it('creates a delivery about the contents of the sandbox', async () => {
    await using relay = await startRelay()
    const opened = await relay.deliver(fixtureOf('pull_request.opened'))
    const { repo, number } = opened
    expect([repo, number]).toEqual(['octo/demo', 2])
    const head = relay.sandbox.issue('octo/demo', 2)?.pull?.head.sha
    expect(opened.payload).toMatchObject({ pull_request: { head: { sha: head } } })
  })

  it("creates Gitea's too, which a relay accepts", async () => {
    await using relay = await startRelay()
    const push = fixtureOf('push', { provider: 'gitea' })
    expect(push.headers).toMatchObject({ 'X-Gitea-Event': 'push' })
    expect(await relay.deliver(push)).toMatchObject({ event: 'push', attempts: [] })
  })

  it('names the command that lists its events', () => {
    expect(() => fixtureOf('nonsense')).toThrow('no template for "nonsense": relay trigger --list has them')
  })
})
