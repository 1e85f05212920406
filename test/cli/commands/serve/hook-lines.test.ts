import { describe, expect, it } from 'vitest'
import { RelayError } from '../../../../src/base/errors.js'
import { hookObject, hookText, isProblem } from '../../../../src/cli/commands/serve/hook-lines.js'
import { localTime } from '../../../../src/cli/output/time.js'
import type { HookDelivery, RepoHook } from '../../../../src/codehost/host.js'
import type { HookEvent } from '../../../../src/serve/hook-event.js'

const URL = 'https://smee.test/channel'
const hook: RepoHook = {
  id: 7,
  url: URL,
  active: true,
  contentType: 'json',
  events: ['*'],
  hasSecret: true,
  lastResponse: undefined,
}
const ready = { hook, created: true, repaired: [], permanent: false, found: false }
const delivery: HookDelivery = {
  id: '3842091948768772096',
  guid: 'a1',
  event: 'issues',
  action: 'opened',
  deliveredAt: Date.UTC(2026, 10, 23, 7),
  redelivery: false,
  statusCode: 502,
  status: 'failed to connect to host',
}
const error = new RelayError('provider_failed', 'GitHub failed (502)')
const repo = 'octo/demo'
const common = { type: 'hook', repo }

describe('what happens to a hook of relay serve', () => {
  it.each<[HookEvent, string, Record<string, unknown>, boolean]>([
    [
      { repo, state: 'ready', hook: ready },
      `hook of octo/demo created: ${URL}`,
      { state: 'ready', id: 7, url: URL, created: true, repaired: [], found: false, permanent: false },
      false,
    ],
    [
      {
        repo,
        state: 'ready',
        hook: { ...ready, created: false, repaired: ['it was inactive', 'it sent form'] },
      },
      `hook of octo/demo repaired (it was inactive, it sent form): ${URL}`,
      {
        state: 'ready',
        id: 7,
        url: URL,
        created: false,
        repaired: ['it was inactive', 'it sent form'],
        found: false,
        permanent: false,
      },
      false,
    ],
    [
      { repo, state: 'failed', error, retries: true },
      'no hook of octo/demo yet: GitHub failed (502)',
      { state: 'failed', error: 'GitHub failed (502)', retries: true },
      true,
    ],
    [
      { repo, state: 'failed', error, retries: false },
      'no hook of octo/demo: GitHub failed (502)',
      { state: 'failed', error: 'GitHub failed (502)', retries: false },
      true,
    ],
    [
      { repo, state: 'missing', count: 40 },
      'catching up with octo/demo: 40 missing',
      { state: 'missing', missing: 40 },
      false,
    ],
    [
      { repo, state: 'caught up', result: { missing: 0, arrived: 0, failed: [] } },
      'caught up with octo/demo: nothing was missing',
      { state: 'caught up', missing: 0, arrived: 0, failed: [] },
      false,
    ],
    [
      {
        repo,
        state: 'caught up',
        result: { missing: 2, arrived: 1, failed: [{ delivery, why: 'it failed again' }] },
      },
      `caught up with octo/demo: 2 missing, 1 arrived, 1 could not be had (issues.opened of ${localTime(delivery.deliveredAt)}: it failed again). relay doctor checks the hook; relay catch-up asks again`,
      {
        state: 'caught up',
        missing: 2,
        arrived: 1,
        failed: [
          {
            id: '3842091948768772096',
            guid: 'a1',
            event: 'issues',
            action: 'opened',
            deliveredAt: '2026-11-23T07:00:00.000Z',
            why: 'it failed again',
          },
        ],
      },
      true,
    ],
    [
      { repo, state: 'not caught up', error, retries: true },
      'could not catch up with octo/demo yet: GitHub failed (502)',
      { state: 'not caught up', error: 'GitHub failed (502)', retries: true },
      true,
    ],
    [
      { repo, state: 'removed', url: URL },
      'hook of octo/demo removed',
      { state: 'removed', url: URL },
      false,
    ],
    [
      { repo, state: 'kept', url: URL },
      'the hook of octo/demo stays, so that --catch-up gets what is sent meanwhile. Remove it with relay hook remove octo/demo',
      { state: 'kept', url: URL },
      false,
    ],
    [
      { repo, state: 'left', error },
      'the hook of octo/demo could not be removed: GitHub failed (502). The next serve --hook uses it again, and relay hook remove octo/demo removes it',
      { state: 'left', error: 'GitHub failed (502)' },
      true,
    ],
  ])('%j', (event, text, object, problem) => {
    expect([hookText(event), hookObject(event), isProblem(event)]).toEqual([
      text,
      { ...common, ...object },
      problem,
    ])
  })
})
