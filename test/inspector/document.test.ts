import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'

/** Prints whether promises are tracked, before and after a page was rendered: only then they have an id. */
const PROGRAM = `
import { executionAsyncId } from 'node:async_hooks'
import { accessPage } from './src/inspector/open-page.js'
const isTracked = () => Promise.resolve().then(() => executionAsyncId() !== 0)
const before = await isTracked()
const page = await accessPage({ path: () => undefined })
console.log(JSON.stringify({ before, isPage: page.includes('Open the inspector'), after: await isTracked() }))`

/** https://nodejs.org/docs/latest-v20.x/api/async_hooks.html#promise-execution-tracking */
it('renders a page without making Node track promises from then on', async () => {
  const args = ['--import', 'tsx', '--input-type=module', '--eval', PROGRAM]
  const { stdout } = await promisify(execFile)(process.execPath, args)
  expect(JSON.parse(stdout)).toEqual({ before: false, isPage: true, after: false })
})
