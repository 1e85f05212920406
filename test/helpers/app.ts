import { saveSetup } from '../../src/auth/setup.js'
import type { AppRequest, Apps, RegisteredApp } from '../../src/codehost/host.js'
import { openHost } from '../../src/codehost/hosts.js'
import type { Store } from '../../src/store/kv.js'

/** Registers an App at a sandbox, as a person does in the browser. */
export async function makeApp(
  url: string,
  hook?: AppRequest['hook'],
): Promise<RegisteredApp & { readonly apps: Apps }> {
  const { apps } = openHost({ name: 'sandbox', url })
  if (!apps) throw new Error('unreachable: the sandbox has Apps')
  const own = 'http://127.0.0.1:8787'
  const redirectUrl = `${own}/setup/callback`
  const callbackUrl = `${own}/auth/sandbox/callback`
  const manifest = apps.manifest({ name: 'relay-test', redirectUrl, callbackUrl, hook })
  const asked = await post(apps.page(undefined), { manifest })
  const agreed = await post(`${url}/settings/apps`, { ...(await tokenIn(asked)), name: 'relay-test' })
  const code = new URL(agreed.headers.get('location') ?? '').searchParams.get('code') ?? ''
  return { ...(await apps.convert(code)), apps }
}

/** Stores an App as `relay setup --app-hook` does; without `hookUrl`, as `relay setup` does. */
export async function storeApp(
  store: Pick<Store, 'update'>,
  providerUrl: string,
  { client, app }: Pick<RegisteredApp, 'client' | 'app'>,
  hookUrl: string | undefined,
): Promise<void> {
  await saveSetup(store, { provider: 'sandbox', providerUrl, client, app, hookUrl }, undefined)
}

/** Installs an App on its page, as a person does in the browser. */
export async function installApp(installUrl: string): Promise<void> {
  const token = await tokenIn(await fetch(installUrl))
  const answer = await post(installUrl.replace(/\/new$/, ''), token)
  if (!answer.ok) throw new Error(`the App was not installed: ${answer.status}`)
}

function post(address: string, fields: Record<string, string>): Promise<Response> {
  return fetch(address, { method: 'POST', body: new URLSearchParams(fields), redirect: 'manual' })
}

async function tokenIn(page: Response): Promise<{ authenticity_token: string }> {
  const [, token = ''] = /name="authenticity_token" value="([^"]+)"/.exec(await page.text()) ?? []
  return { authenticity_token: token }
}
