import { Secret } from '../../src/base/secret.js'
import { DEFAULTS, NO_ROUTES, type Settings } from '../../src/base/settings.js'
import { type InstanceRecord, INSPECT_TEXT, prove, PROOF_HEADER } from '../../src/instance/running.js'
import { serve, type ServeOptions, type Serving } from '../../src/serve/serve.js'
import { type DeliveryOptions, githubDelivery, post, SECRET } from '../helpers/delivery.js'

/** A relay with its inspector opened, as a browser has it. */
export interface Rig extends AsyncDisposable {
  readonly serving: Serving
  readonly url: string
  /** The `Cookie` header of the session, and the key for changes. */
  readonly cookie: string
  readonly key: string
  /** A one-time code, as `relay inspect` gets it. */
  readonly code: () => Promise<string>
  /** Sends a signed delivery, and resolves when it is stored. */
  deliver(options?: DeliveryOptions): Promise<void>
  /** Reads an address below /inspect/api/ with the cookie. */
  get(path: string, headers?: Readonly<Record<string, string>>): Promise<Response>
  json(path: string): Promise<unknown>
  /** Posts JSON as the page's own script does. */
  send(path: string, body: unknown, headers?: Readonly<Record<string, string>>): Promise<Response>
}

const { sandboxPort: _, ...defaults } = DEFAULTS
export const SETTINGS: Settings = {
  ...defaults,
  profile: 'test',
  folder: '',
  provider: 'github',
  providerUrl: 'https://github.com',
  webhookSecrets: { current: new Secret(SECRET) },
  port: 0,
  allowedHosts: [],
  store: 'memory',
  routes: NO_ROUTES,
}

export async function openRig(settings: Partial<Settings> = {}, options: ServeOptions = {}): Promise<Rig> {
  let record: InstanceRecord | undefined
  const onTaken = (taken: InstanceRecord): undefined => void (record = taken)
  const serving = await serve({ ...SETTINGS, ...settings }, { ...options, onTaken })
  const { url } = serving
  const code = async (): Promise<string> => {
    if (!record) throw new Error('the profile was not taken')
    const headers = { [PROOF_HEADER]: prove(record, INSPECT_TEXT) }
    const answer: { code: string } = JSON.parse(
      await (await fetch(`${url}/instance/inspect`, { method: 'POST', headers })).text(),
    )
    return answer.code
  }
  const { cookie, key } = await sessionOf(await enter(url, await code()))
  const get: Rig['get'] = (path, headers = {}) =>
    fetch(`${url}/inspect/api/${path}`, { headers: { Cookie: cookie, ...headers } })
  return {
    serving,
    url,
    cookie,
    key,
    code,
    async deliver(delivery = {}) {
      const { status, body } = await post(`${url}/webhook`, githubDelivery(delivery))
      if (status !== 200) throw new Error(`the delivery was answered ${status}: ${body}`)
    },
    get,
    async json(path) {
      const value: unknown = await (await get(path)).json()
      return value
    },
    send: (path, body, headers = {}) =>
      fetch(`${url}/inspect/api/${path}`, {
        method: 'POST',
        headers: {
          Cookie: cookie,
          'X-Relay-Key': key,
          Origin: url,
          'Content-Type': 'application/json',
          ...headers,
        },
        body: JSON.stringify(body),
      }),
    [Symbol.asyncDispose]: () => serving[Symbol.asyncDispose](),
  }
}

/** Posts a code as the form does. */
export function enter(
  url: string,
  code: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<Response> {
  return fetch(`${url}/inspect/open`, { method: 'POST', headers, body: new URLSearchParams({ code }) })
}

/** The session that the answer to a right code opens. */
export async function sessionOf(
  answer: Response,
): Promise<{ readonly cookie: string; readonly key: string }> {
  const [cookie = ''] = (answer.headers.get('set-cookie') ?? '').split(';')
  const [, key = ''] = /data-key="([^"]*)"/.exec(await answer.text()) ?? []
  return { cookie, key }
}
