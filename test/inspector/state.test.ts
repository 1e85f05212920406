import { expect, it } from 'vitest'
import { saveHook } from '../../src/hooks/saved.js'
import { createProvider } from '../../src/providers/open.js'
import { openRig } from './rig.js'

it('names the hooks of the profile, and why one could not be made', async () => {
  let onFailed: (message: string) => void = () => {}
  const failed = new Promise<string>((resolve) => (onFailed = resolve))
  const url = 'https://relay.example/webhook'
  await using rig = await openRig(
    { publicUrl: 'https://relay.example' },
    {
      hooks: { repos: [{ owner: 'octo', repo: 'demo' }], user: 'octo', catchUp: false },
      onHook: (event) => void (event.state === 'failed' && onFailed(event.error.message)),
    },
  )
  const host = createProvider({ name: 'github', url: 'https://github.com' })
  const hook = { url, chosen: false, events: null, permanent: true }
  const { store } = rig.serving.relay.database
  await saveHook(store, host, { owner: 'octo', repo: 'made' }, { ...hook, id: 7 })
  await saveHook(store, host, { owner: 'octo', repo: 'begun' }, { ...hook, id: null })
  const problem = await failed
  expect(problem).toMatch(/sign/i)
  expect(await rig.json('state')).toMatchObject({
    hooks: [
      { repo: 'octo/made', url, permanent: true, problem: null },
      { repo: 'octo/demo', url: null, permanent: false, problem },
    ],
  })
})
