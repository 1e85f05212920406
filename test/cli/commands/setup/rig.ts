import { main } from '../../../../src/cli/main.js'
import type { Context } from '../../../../src/cli/context.js'
import { testContext } from '../../../helpers/context.js'
import { type Ran, type Shell, shell } from '../../rig.js'

/** A shell without a client, for a sandbox that runs alone. */
export function newcomer(providerUrl: string, env: Record<string, string> = {}): Shell {
  return shell({ RELAY_PROVIDER: 'sandbox', RELAY_PROVIDER_URL: providerUrl, ...env })
}

/** Runs `relay setup --no-browser …`, calls `visit` with the address that it prints, and waits for its end. */
export async function setup(
  { env }: Shell,
  argv: readonly string[],
  visit: (address: string) => Promise<unknown>,
  over: Partial<Context> = {},
): Promise<Ran> {
  let said = ''
  let onAddress: ((address: string) => void) | undefined
  const address = new Promise<string>((resolve) => (onAddress = resolve))
  const stderr = {
    write(text: string) {
      said += text
      const [, found] = /\n {2}(http\S+)\n/.exec(said) ?? []
      if (found) onAddress?.(found)
    },
  }
  const { context, out } = testContext({ env, stderr, ...over })
  const ended = main(['setup', '--no-browser', ...argv], context)
  const first = await Promise.race([address, ended])
  if (typeof first === 'string') await visit(first)
  return { code: await ended, out: out(), err: said }
}

/** The setup's own page in a browser that has visited it. */
export interface Visit {
  readonly cookie: string
  readonly action: string
  readonly manifest: string
}

export async function open(address: string): Promise<Visit> {
  const page = await fetch(address)
  const text = await page.text()
  const field = (pattern: RegExp): string => unescaped(pattern.exec(text)?.[1] ?? '')
  return {
    cookie: (page.headers.get('set-cookie') ?? '').split(';', 1)[0] ?? '',
    action: field(/action="([^"]+)"/),
    manifest: field(/name="manifest" value="([^"]+)"/),
  }
}

/** Agrees at the code host. Resolves to the address that it sends the browser to. */
export async function agree({ action, manifest }: Visit, name?: string): Promise<string> {
  const { origin } = new URL(action)
  const asked = await post(action, { manifest })
  const [, token = ''] = /name="authenticity_token" value="([^"]+)"/.exec(await asked.text()) ?? []
  const answer = await post(`${origin}/settings/apps`, {
    authenticity_token: token,
    name: name ?? String(JSON.parse(manifest).name),
  })
  return answer.headers.get('location') ?? ''
}

/** The whole way of a browser, up to setup's last page. */
export async function register(address: string): Promise<Response> {
  const visit = await open(address)
  return fetch(await agree(visit), { headers: { cookie: visit.cookie } })
}

export function post(address: string, fields: Record<string, string>): Promise<Response> {
  return fetch(address, { method: 'POST', body: new URLSearchParams(fields), redirect: 'manual' })
}

function unescaped(text: string): string {
  return text.replaceAll('&quot;', '"').replaceAll('&amp;', '&')
}
