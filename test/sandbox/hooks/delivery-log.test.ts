import { expect, it } from 'vitest'
import { DeliveryLog } from '../../../src/sandbox/hooks.js'

const delivery = (hookId: number, payload: string) => ({
  hookId,
  payload,
  guid: 'a',
  event: 'push',
  action: null,
  repositoryId: 1,
  installationId: null,
  contentType: 'json' as const,
  url: 'http://127.0.0.1/',
  redelivery: false,
  deliveredAt: 0,
  duration: 0,
  status: 'OK',
  statusCode: 200,
  requestHeaders: {},
  response: undefined,
  failure: undefined,
})

it('keeps at most so many deliveries of all hooks, the newest', () => {
  const log = new DeliveryLog(() => 0, { entries: 3, payloads: 1000 })
  for (const [hook, payload] of [
    [1, 'a'],
    [2, 'b'],
    [1, 'c'],
    [2, 'd'],
  ] as const)
    log.add(delivery(hook, payload))
  expect([1, 2].map((hook) => log.of(hook).map(({ payload }) => payload))).toEqual([['c'], ['d', 'b']])
})

it('keeps at most so many characters of payloads', () => {
  const log = new DeliveryLog(() => 0, { entries: 100, payloads: 10 })
  for (const payload of ['aaaa', 'bbbb', 'cccc', 'd']) log.add(delivery(1, payload))
  expect(log.of(1).map(({ payload }) => payload)).toEqual(['d', 'cccc', 'bbbb'])
})
