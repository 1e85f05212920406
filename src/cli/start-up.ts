import { homedir, userInfo } from 'node:os'
import type { Settings } from '../base/settings.js'
import type { Serving } from '../serve.js'
import type { Paint } from './output.js'
import { packageVersion } from './version.js'
import { webhookSecretFile } from './webhook-secret.js'

/** What a person needs to know when the service has started: what is where, and what to try next. */
export function startUpBlock(serving: Serving, secretFrom: 'settings' | 'profile', paint: Paint): string {
  const { url, settings, sandbox } = serving
  const { profile, provider, providerUrl, store, folder } = settings
  const rows = [
    ['address', paint.bold(url)],
    ['code host', sandbox ? `sandbox, ${providerUrl}` : `${provider}, ${providerUrl}`],
    ['store', store === 'file' ? `file, ${tilde(folder)}` : 'memory, gone when this ends'],
    ['secret', secretFrom === 'settings' ? 'RELAY_WEBHOOK_SECRET' : keptSecret(store, folder)],
  ]
  return [
    `${paint.bold('relay')} ${packageVersion()}, profile ${profile}`,
    '',
    ...rows.map(([name = '', text = '']) => `  ${paint.dim(name.padEnd(10))}${text}`),
    '',
    ...nextSteps(serving).map((line) => `  ${line}`),
    '',
  ].join('\n')
}

function keptSecret(store: Settings['store'], folder: string): string {
  return store === 'file'
    ? `in ${tilde(webhookSecretFile(folder))}`
    : 'made for this run; RELAY_WEBHOOK_SECRET sets one you know'
}

function nextSteps({ url, settings, sandbox }: Serving): string[] {
  const { provider, oauthClient, profile } = settings
  const signIn = `${url}/auth/${provider}?userId=${encodeURIComponent(userInfo().username)}`
  const publicUrl = settings.publicUrl ?? url
  if (sandbox) {
    return [
      `sign in:      open ${signIn}`,
      `code host:    open ${sandbox.url}`,
      `other shells: export RELAY_PROFILE=${profile}`,
    ]
  }
  return [
    `webhook:      ${publicUrl}/webhook, content type application/json, with the secret above`,
    oauthClient
      ? `sign in:      open ${signIn}`
      : `sign-in:      off; register ${publicUrl}/auth/${provider}/callback at the code host, set RELAY_CLIENT_ID and RELAY_CLIENT_SECRET`,
  ]
}

function tilde(file: string): string {
  const home = homedir()
  return file.startsWith(`${home}/`) ? `~${file.slice(home.length)}` : file
}
