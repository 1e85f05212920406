import path from 'node:path'
import { expect, it } from 'vitest'
import { attach } from '../../../src/cli/session/attach.js'
import { namedTargets } from '../../../src/cli/session/current-routes.js'
import { startRelay } from '../../../src/testing/index.js'
import { emptyFolder, testContext } from '../../helpers/context.js'
import { register } from '../rig.js'

const APP = 'http://127.0.0.1:1/hooks'

it('names targets as the running instance does, else as the settings do', async () => {
  const home = emptyFolder()
  const forward = [`app=${APP}`, `push=${APP}?key=1`]
  const settings = { profile: 'default', folder: path.join(home, 'default'), store: 'file' } as const
  const { context } = testContext({ env: { RELAY_HOME: home, RELAY_FORWARD: `mine=${APP}` } })
  {
    await using relay = await startRelay({
      settings: { ...settings, routes: { forward, exec: ['deploy=push=true'], ignore: [] } },
    })
    using _registered = await register(relay, home)
    expect(await namedTargets(await attach(context, {}), context)).toEqual([
      { id: `*=${APP}`, name: 'app' },
      // Without its query, which may be a secret.
      { id: `push=${APP}?…` },
      { id: 'push=exec:true', name: 'deploy' },
    ])
  }
  expect(await namedTargets(await attach(context, {}), context)).toEqual([
    expect.objectContaining({ id: `*=${APP}`, name: 'mine' }),
  ])
})
