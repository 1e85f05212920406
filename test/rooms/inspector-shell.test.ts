import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'

/** Prints whether promises are tracked, before and after the page was made: only then they have an id. */
const PROGRAM = `
import { executionAsyncId } from 'node:async_hooks'
import { openShell } from './src/inspector/shell.js'
import './src/inspector/inspector.js'
const isTracked = () => Promise.resolve().then(() => executionAsyncId() !== 0)
const before = await isTracked()
const { page } = await openShell({ profile: 'default', sandbox: false, isNamed: false })
console.log(JSON.stringify({ before, isPage: Buffer.from(page.body).includes('<html'), after: await isTracked() }))`

/** Intake took 6 % fewer deliveries then: https://nodejs.org/docs/latest-v20.x/api/async_hooks.html#promise-execution-tracking */
it('makes the page without making Node track promises from then on', async () => {
  const args = ['--import', 'tsx', '--input-type=module', '--eval', PROGRAM]
  const { stdout } = await promisify(execFile)(process.execPath, args)
  expect(JSON.parse(stdout)).toEqual({ before: false, isPage: true, after: false })
})
