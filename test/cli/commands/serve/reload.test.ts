import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { expect, it } from 'vitest'
import { watchSettings } from '../../../../src/old/commands/serve/reload.js'
import { testContext } from '../../../helpers/context.js'

it('what changes before relay serves is read again once it does', async () => {
  const { context } = testContext()
  const file = path.join(context.cwd, 'relay.json')
  const reloaded = { early: 0, late: 0 }
  using late = watchSettings(context)
  using early = watchSettings(context)
  early.start(() => reloaded.early++)
  writeFileSync(file, '{}')
  await expect.poll(() => reloaded).toEqual({ early: 1, late: 0 })
  late.start(() => reloaded.late++)
  await expect.poll(() => reloaded).toEqual({ early: 1, late: 1 })
  writeFileSync(file, '{ }')
  await expect.poll(() => reloaded).toEqual({ early: 2, late: 2 })
})

it('is read again at SIGHUP, also if nothing has changed, and not otherwise', async () => {
  let hangUp: (() => void) | undefined
  const { context } = testContext({
    onHangup(listener) {
      hangUp = listener
      return () => (hangUp = undefined)
    },
  })
  let reloaded = 0
  {
    using watch = watchSettings(context)
    watch.start(() => reloaded++)
    expect(reloaded).toBe(0)
    hangUp?.()
    await expect.poll(() => reloaded).toBe(1)
  }
  expect(hangUp).toBeUndefined()
})
