import type { Place, Serving } from './place.js'

/** An inspector that is open, as a browser has it. */
export interface Inspector {
  readonly url: string
  /** The `Cookie` header of the session, and the key for changes. */
  readonly cookie: string
  readonly key: string
  /** Gets a one-time code, as `relay inspect` does. */
  readonly code: () => Promise<string>
  /** Reads an address below /inspect/api/ with the cookie. */
  get(path: string, headers?: Readonly<Record<string, string>>): Promise<Response>
  json(path: string): Promise<unknown>
  /** Posts JSON as the page's own script does. */
  send(path: string, body: unknown, headers?: Readonly<Record<string, string>>): Promise<Response>
}

/** Opens the inspector of a relay with a one-time code. */
export async function openInspector(here: Pick<Place, 'run'>, { address: url }: Serving): Promise<Inspector> {
  const code = (): Promise<string> => oneTimeCode(here)
  const { cookie, key } = await sessionOf(await enter(url, await code()))
  const get: Inspector['get'] = (path, headers = {}) =>
    fetch(`${url}/inspect/api/${path}`, { headers: { Cookie: cookie, ...headers } })
  return {
    url,
    cookie,
    key,
    code,
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
  }
}

/** Gets a one-time code for the inspector of the relay that runs. */
export async function oneTimeCode(here: Pick<Place, 'run'>): Promise<string> {
  const { code, out, err } = await here.run('inspect', '--no-browser', '--json')
  if (code !== 0) throw new Error(`relay inspect ended with ${code}:\n${err}`)
  const { code: oneTime }: { readonly code: string } = JSON.parse(out)
  return oneTime
}

/** Posts a code as the page does. */
export function enter(
  url: string,
  code: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<Response> {
  return fetch(`${url}/inspect/api/open`, {
    method: 'POST',
    headers: { Origin: url, 'Content-Type': 'application/json', ...headers },
    body: JSON.stringify({ code }),
  })
}

/** The session that the answer to a right code opens. @throws Error with what was answered to a wrong one. */
export async function sessionOf(
  answer: Response,
): Promise<{ readonly cookie: string; readonly key: string }> {
  const text = await answer.text()
  const [cookie] = (answer.headers.get('set-cookie') ?? '').split(';')
  const { key }: { readonly key?: string } = JSON.parse(text)
  if (!cookie || key === undefined) throw new Error(`no session in the answer ${answer.status}:\n${text}`)
  return { cookie, key }
}
