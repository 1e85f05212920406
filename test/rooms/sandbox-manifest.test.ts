import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Sandbox } from '../../src/sandbox/sandbox.js'
import { manifest, NOW, post, REDIRECT, start } from './sandbox-rig.js'

let now: number
let sandbox: Sandbox
beforeEach(async () => {
  now = NOW
  sandbox = await start({ clock: () => now })
})
afterEach(() => sandbox[Symbol.asyncDispose]())

describe('the manifest flow', () => {
  it.each([
    ['no JSON', '{'],
    ['no object', '[]'],
    ['no homepage', manifest({ url: undefined })],
    ['a long name', manifest({ name: 'x'.repeat(35) })],
    ['a redirect to another machine', manifest({ redirect_url: 'https://example.com/' })],
    ['an unknown event', manifest({ default_events: ['pushed'] })],
    ['an unknown access', manifest({ default_permissions: { issues: 'all' } })],
    ['a hook without an address', manifest({ hook_attributes: { active: true } })],
    ['eleven callbacks', manifest({ callback_urls: Array.from({ length: 11 }, () => REDIRECT) })],
  ])('refuses a manifest with %s', async (_, text) => {
    const answer = await post(sandbox, '/settings/apps/new', { manifest: text })
    expect([answer.status, await answer.text()]).toEqual([
      422,
      expect.stringContaining('No App was registered'),
    ])
  })
})
