import type { Running } from './run.js'

// What a person does in a browser, in pages of the sandbox and of relay. It speaks HTTP only.

export type Button = 'authorize' | 'cancel'

/** The address that a command prints for the browser, once it has. */
export async function addressOf(running: Pick<Running, 'says' | 'err'>): Promise<string> {
  return (await invitation(running, /\n {2}(http\S+)\n/))[0] ?? ''
}

/** The address and the code that `relay login --device` prints, once it has. */
export async function deviceOf(
  running: Pick<Running, 'says' | 'err'>,
): Promise<{ readonly address: string; readonly code: string }> {
  const [address = '', code = ''] = await invitation(running, /\n {2}(http\S+)\n {2}(\S+)\n/)
  return { address, code }
}

async function invitation(running: Pick<Running, 'says' | 'err'>, pattern: RegExp): Promise<string[]> {
  await running.says(pattern)
  return pattern.exec(running.err)?.slice(1) ?? []
}

/** Signs a user in at a relay whose code host is a sandbox. */
export async function signIn(relayUrl: string, user: string) {
  return signInAt(`${relayUrl}/auth/sandbox?userId=${encodeURIComponent(user)}`)
}

/** The same from the address where signing in begins, which `relay login` prints; the person presses `button`. */
export async function signInAt(address: string, button?: Button) {
  return finishSignIn(await beginSignIn(address), button)
}

/** A sign-in up to the consent page: its address, and the cookie the browser was given on the way. */
export async function beginSignIn(address: string) {
  const redirect = await fetch(address, { redirect: 'manual' })
  return { authorize: await locationOf(redirect), cookie: cookieOf(redirect) }
}

/** What came back to relay's callback, and where the browser ended up. */
export async function finishSignIn(
  { authorize, cookie }: Awaited<ReturnType<typeof beginSignIn>>,
  button?: Button,
) {
  const callback = await consent(authorize, button)
  const back = await fetch(callback, { headers: { cookie }, redirect: 'manual' })
  await back.arrayBuffer()
  const { searchParams } = new URL(callback)
  return {
    code: searchParams.get('code') ?? '',
    state: searchParams.get('state') ?? '',
    location: back.headers.get('location') ?? '',
  }
}

/** Presses a button of the sandbox's consent page. Returns the address that leads back to the application. */
export async function consent(page: string, button: Button = 'authorize'): Promise<string> {
  return locationOf(await decide(await fetch(page), button))
}

/** Enters the code of `relay login --device` in the sandbox's page, and presses a button of the next. */
export async function device(address: string, code: string, button: Button = 'authorize'): Promise<void> {
  await pageOf(await decide(await post(address, { user_code: code }), button))
}

async function decide(page: Response, button: Button): Promise<Response> {
  const { url, token } = await formOf(page)
  return post(url, { authenticity_token: token, authorize: button === 'authorize' ? '1' : '0' })
}

/** Has the sandbox forget a token of an OAuth application, as its user does in the settings there. */
export async function endToken(
  sandboxUrl: string,
  client: { readonly id: string; readonly secret: string },
  token: string,
): Promise<void> {
  const authorization = `Basic ${Buffer.from(`${client.id}:${client.secret}`).toString('base64')}`
  const answer = await fetch(`${sandboxUrl}/api/v3/applications/${client.id}/token`, {
    method: 'DELETE',
    headers: { authorization, 'content-type': 'application/json' },
    body: JSON.stringify({ access_token: token }),
  })
  await pageOf(answer)
}

/** Makes a classic personal access token in the sandbox's settings. */
export async function personalToken(sandboxUrl: string): Promise<string> {
  const { url, token } = await formOf(await fetch(`${sandboxUrl}/settings/tokens/new`))
  const page = await pageOf(await post(url, { authenticity_token: token, kind: 'classic' }))
  return found(/<code id="token">([^<]+)</, page)
}

/** The page of `relay setup` in a browser that has opened it. */
export async function open(address: string) {
  const answer = await fetch(address)
  const page = await pageOf(answer)
  return {
    cookie: cookieOf(answer),
    /** Where the manifest goes: the code host's page for a new App. */
    action: unescaped(found(/action="([^"]+)"/, page)),
    manifest: unescaped(found(/name="manifest" value="([^"]+)"/, page)),
  }
}

/** Registers the App at the sandbox, under its own name or another. Returns the address that leads back to relay. */
export async function agree(
  { action, manifest }: { readonly action: string; readonly manifest: string },
  name?: string,
): Promise<string> {
  const { url, token } = await formOf(await post(action, { manifest }))
  const fields = { authenticity_token: token, name: name ?? String(JSON.parse(manifest).name) }
  return locationOf(await post(url, fields))
}

/** The whole way from the address that `relay setup` prints to setup's last page. */
export async function register(address: string): Promise<Response> {
  const visit = await open(address)
  return fetch(await agree(visit), { headers: { cookie: visit.cookie } })
}

/** Installs an App on its page. */
export async function installApp(installUrl: string): Promise<void> {
  const { url, token } = await formOf(await fetch(installUrl))
  await pageOf(await post(url, { authenticity_token: token }))
}

/** Runs `relay setup --app-hook`, registers the App, and installs it. The App's name, and what the command printed. */
export async function setUpApp(
  here: { start(...argv: string[]): Running; readonly sandbox: { idle(): Promise<void> } },
  ...flags: string[]
): Promise<{ readonly slug: string; readonly out: string; readonly err: string }> {
  await using running = here.start('setup', '--app-hook', '--no-browser', '--json', ...flags)
  await register(await addressOf(running))
  const { code, out, err } = await running.ended
  if (code !== 0) throw new Error(`relay setup ended with ${code}:\n${err}`)
  const { app }: { app: { slug: string; installUrl: string } } = JSON.parse(out)
  await installApp(app.installUrl)
  await here.sandbox.idle()
  return { slug: app.slug, out, err }
}

/** Sends a form, and follows no redirect. */
export function post(
  address: string,
  fields: Record<string, string> | [string, string][],
): Promise<Response> {
  return fetch(address, { method: 'POST', body: new URLSearchParams(fields), redirect: 'manual' })
}

/** Where a page's form is sent to, and its anti-forgery token. */
export async function formOf(answer: Response): Promise<{ readonly url: string; readonly token: string }> {
  const page = await pageOf(answer)
  const { href } = new URL(unescaped(found(/<form method="post" action="([^"]+)"/, page)), answer.url)
  return { url: href, token: found(/name="authenticity_token" value="([^"]+)"/, page) }
}

async function pageOf(answer: Response): Promise<string> {
  const page = await answer.text()
  if (!answer.ok) throw new Error(`${answer.url} answered ${answer.status}:\n${page}`)
  return page
}

async function locationOf(answer: Response): Promise<string> {
  const page = await answer.text()
  const location = answer.headers.get('location')
  if (location === null) throw new Error(`${answer.url} answered ${answer.status}, no redirect:\n${page}`)
  return location
}

function cookieOf({ headers }: Response): string {
  return (headers.get('set-cookie') ?? '').split(';', 1)[0] ?? ''
}

function found(pattern: RegExp, page: string): string {
  const [, part] = pattern.exec(page) ?? []
  if (part === undefined) throw new Error(`${pattern} is not in the page:\n${page}`)
  return part
}

function unescaped(text: string): string {
  return text.replaceAll('&quot;', '"').replaceAll('&amp;', '&')
}
