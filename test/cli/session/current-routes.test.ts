import path from 'node:path'
import { expect, it } from 'vitest'
import { attach } from '../../../src/old/session/attach.js'
import { namedTargets } from '../../../src/old/session/current-routes.js'
import { startRelay } from '../../../src/testing/index.js'
import { emptyFolder, testContext } from '../../helpers/context.js'
import { registered } from '../rig.js'

const APP = 'http://127.0.0.1:1/hooks'
const API = 'http://ada:canary@127.0.0.1:2/'

it('names targets as the running instance does, else as the settings do', async () => {
  const home = emptyFolder()
  const forward = [`app=${APP}`, `push=${APP}?key=1`, `api=${API}?key=1`, `one=${APP}?a`, `two=${APP}?b`]
  const settings = { profile: 'default', folder: path.join(home, 'default'), store: 'file' } as const
  const { context } = testContext({ env: { RELAY_HOME: home, RELAY_FORWARD: `mine=${APP}` } })
  {
    await using _relay = await startRelay({
      settings: { ...settings, routes: { forward, exec: ['deploy=push=true'], ignore: [] } },
      ...registered(home),
    })
    expect(await namedTargets(await attach(context, {}), context)).toEqual([
      { id: `*=${APP}`, name: 'app' },
      // Without their queries, which may be secrets.
      { id: `push=${APP}?…` },
      { id: `*=http://***@127.0.0.1:2/?…`, name: 'api' },
      // One of the two, and it is not known which.
      { id: `*=${APP}?…` },
      { id: `*=${APP}?…` },
      { id: 'push=exec:true', name: 'deploy' },
    ])
  }
  expect(await namedTargets(await attach(context, {}), context)).toEqual([{ id: `*=${APP}`, name: 'mine' }])
})
