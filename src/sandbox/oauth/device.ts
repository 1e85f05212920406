import { Hono } from 'hono'
import type { Clock } from '../../base/time.js'
import type { HttpEnv } from '../../http/body.js'
import { deviceConsentPage, deviceDonePage, enterCodePage } from '../pages/device.js'
import { readScopes } from './authorize-request.js'
import type { Clients } from './clients.js'
import { DEVICE_LIFETIME_S, type DeviceCodes, POLL_INTERVAL_S } from './device-codes.js'
import { failure, readFields, readForm, respond } from './form.js'
import { Once } from './once.js'

export interface DeviceParts {
  readonly clients: Clients
  readonly devices: DeviceCodes
  readonly url: () => string
  readonly clock: Clock
}

/** Device flow (RFC 8628): the device asks for codes, the user enters one in a browser and decides. */
export function deviceRoutes({ clients, devices, url, clock }: DeviceParts): Hono<HttpEnv> {
  const forms = new Once<string>(clock, DEVICE_LIFETIME_S * 1000)
  return new Hono<HttpEnv>()
    .post('/login/device/code', async (c) => {
      const fields = await readFields(c)
      const client = clients.find(fields.get('client_id'))
      if (!client) return respond(c, { error: 'Not Found' }, 404)
      if (!client.deviceFlow) return respond(c, failure('device_flow_disabled'), 400)
      const { deviceCode, userCode } = devices.issue(client.id, readScopes(fields.get('scope') ?? ''))
      return respond(c, {
        device_code: deviceCode,
        user_code: userCode,
        verification_uri: `${url()}/login/device`,
        expires_in: DEVICE_LIFETIME_S,
        interval: POLL_INTERVAL_S,
      })
    })
    .get('/login/device', () => enterCodePage())
    .post('/login/device', async (c) => {
      const entered = devices.enter((await readForm(c)).get('user_code') ?? '')
      return typeof entered === 'string'
        ? enterCodePage(entered)
        : deviceConsentPage(entered, forms.put(entered.userCode))
    })
    .post('/login/device/confirmation', async (c) => {
      const form = await readForm(c)
      const userCode = forms.take(form.get('authenticity_token') ?? '')
      const decision = form.get('authorize') === '1' ? 'granted' : 'denied'
      if (userCode === undefined || !devices.decide(userCode, decision)) return enterCodePage('unknown')
      return deviceDonePage(decision)
    })
}
