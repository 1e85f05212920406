import { describe, expect, it } from 'vitest'
import { RelayError } from '../../src/base/errors.js'
import { startRelay } from './auth-rig.js'

const START = {
  'content-type': 'application/json',
  'x-request-id': expect.any(String),
  date: expect.any(String),
  connection: 'keep-alive',
  'keep-alive': 'timeout=5',
}

describe('GET /ready', () => {
  it('is 200 while deliveries can be taken', async () => {
    await using relay = await startRelay()
    const headers = { ...START, 'content-length': '18' }
    expect(await relay.ask('GET', '/ready')).toEqual({ status: 200, headers, body: '{"status":"ready"}' })
    expect(await relay.ask('HEAD', '/ready')).toMatchObject({ status: 200, body: '' })
  })

  it("is 503 in the service's form of error while they cannot, with no line in the log", async () => {
    const cause = new Error('the place of the database')
    const ready = () => Promise.reject(new RelayError('storage', 'Deliveries cannot be stored', { cause }))
    await using relay = await startRelay({ ready })
    const body = '{"error":"Deliveries cannot be stored"}'
    const headers = { ...START, 'content-length': String(body.length) }
    expect(await relay.ask('GET', '/ready')).toEqual({ status: 503, headers, body })
    expect(await relay.ask('HEAD', '/ready')).toMatchObject({ status: 503, body: '' })
    expect(await relay.ask('GET', '/health')).toMatchObject({ status: 200, body: '{"status":"ok"}' })
    expect(relay.log.lines).toEqual([])
  })
})
