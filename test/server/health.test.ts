import { expect, it } from 'vitest'
import { healthRoutes } from '../../src/server/routes/health.js'

it('GET /health proves nothing where no instance runs', async () => {
  const routes = healthRoutes({ prove: () => undefined })
  const headers = { 'X-Relay-Challenge': 'q83vASNFZ4mrze8BI0VniQ' }
  const response = await routes.request('/health', { headers })
  expect([response.status, Object.fromEntries(response.headers), await response.text()]).toEqual([
    200,
    { 'content-type': 'application/json' },
    '{"status":"ok"}',
  ])
})
