import { executionAsyncId } from 'node:async_hooks'
import { expect, it } from 'vitest'
import { accessPage } from '../../src/inspector/open-page.js'

it('renders a page without making Node track promises from then on', async () => {
  // Promises have an id only where they are tracked.
  // https://nodejs.org/docs/latest-v20.x/api/async_hooks.html#promise-execution-tracking
  const id = (): Promise<number> => Promise.resolve().then(() => executionAsyncId())
  expect(await id()).toBe(0)
  expect(await accessPage({ path: () => undefined })).toContain('<h1>Open the inspector</h1>')
  expect(await id()).toBe(0)
})
