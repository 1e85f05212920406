import { randomBytes } from 'node:crypto'
import { saveSetup } from '../../auth/setup.js'
import { RelayError, toRelayError } from '../../base/errors.js'
import { isLoopback } from '../../base/address.js'
import { Secret } from '../../base/secret.js'
import type { OAuthClient } from '../../base/settings.js'
import type { AppsApi, CodeHost, RegisteredApp } from '../../codehost/host.js'
import { makeProfileSecret } from '../../webhook/profile-secret.js'
import { define, type Flags, type Shell } from '../command.js'
import { showAddress } from '../browser.js'
import { canAsk, Prompt } from '../input.js'
import type { Output } from '../output/output.js'
import { t, table } from '../output/text.js'
import { publicAddress, redirectUri, tunnelAddress } from '../addresses.js'
import { onlyInMemory, restartText, stopFirst } from '../advice.js'
import { openNamedHost } from '../code-host.js'
import { noDataYet, openProfile, type Profile, remember } from '../profile.js'
import { readStoredClient } from '../stored-setup.js'
import { sharedSecretText } from '../webhook-secret.js'
import { diagnose, printChecks } from '../checks/diagnose.js'

export const setupCommand = define({
  description: `Registers relay at the code host and stores the client in the profile. At GitHub, a page in your browser leads to creating
an App. At Gitea, Forgejo and GitLab, relay asks for an access token (GitLab: an administrator's), registers an OAuth application
with it, and forgets it; without one, it shows what to enter on the code host's page. Asks before it replaces a client. Ends with the checks of relay doctor.`,
  examples: `relay setup
relay setup --app-hook   receive from all repositories of the App
relay setup --provider gitea --provider-url https://git.example.com < token.txt
relay setup --oauth-app  an OAuth app instead, registered by hand`,
  options: [
    ['--app-hook', "let the App's own webhook send deliveries here"],
    ['--org <name>', 'organization that will own the App (default: your account)'],
    ['--oauth-app', 'show the values of an OAuth app to register, then ask for its id and secret'],
    ['--no-browser', 'print the address instead of opening it'],
    ['--yes', 'replace a client that an earlier setup stored, without asking'],
  ],
  settings: ['provider', 'providerUrl', 'port', 'host', 'publicUrl', 'store'],
  env: ['clientId', 'clientSecret', 'webhookSecret', 'home', 'user'],
  exits: [[4, 'the access token is not accepted'], [7, 'no App was registered within 15 minutes'], 8, 130],
  run: runSetup,
  print,
  json,
})

interface SetupFlags extends Flags {
  readonly appHook?: boolean
  readonly browser?: boolean
  readonly oauthApp?: boolean
  readonly org?: string
  readonly yes?: boolean
}

/**
 * Runs `relay setup`. Nothing is stored before something was registered, so a cancelled setup leaves no profile behind.
 */
async function runSetup(shell: Shell, flags: SetupFlags): Promise<SetUp> {
  await using profile = await openProfile(shell, flags, { mustExist: false })
  const plan = await planSetup(profile)
  const { host } = plan
  const apps = flags.oauthApp ? undefined : host.apps
  if (!apps && (flags.appHook || flags.org !== undefined))
    throw new RelayError('usage', '--app-hook and --org are for a GitHub App only')
  using prompt = new Prompt(shell)
  const data = await profile.data().catch(noDataYet)
  const before = await (data && readStoredClient(data.secrets, profile))
  if (before && !flags.yes) {
    const existing = `This profile has the client ${before.client.id} of ${before.providerUrl}`
    const how = `${existing}. To replace it without being asked, give --yes`
    await prompt.agree(`${existing}. Replace it?`, { how, remains: 'Nothing was changed' })
  }
  const save: Save = async (client, app, hookUrl) => {
    const place = { provider: host.name, providerUrl: host.url }
    const { secrets } = await profile.createData()
    await saveSetup(secrets, { ...place, client, app: app?.app, hookUrl }, before, profile.command)
    if (!profile.instance) remember(profile, place, false)
  }
  if (apps) {
    const app = await registerApp(shell, flags, plan, { apps, save })
    return await report(shell, flags, profile, app.client, app)
  }
  const byToken = flags.oauthApp ? undefined : await registerWithToken(shell, plan, prompt)
  const client = byToken ?? (await registerByHand(shell, flags, plan, prompt))
  await save(client)
  return await report(shell, flags, profile, client)
}

/** Stores the registration. `hookUrl` is the address of the App's webhook, if that is active. */
type Save = (client: OAuthClient, app?: RegisteredApp, hookUrl?: string) => Promise<void>

type Plan = Awaited<ReturnType<typeof planSetup>>

/** Checks that the result of setup would take effect, before the user is asked or anything is registered. */
async function planSetup(profile: Profile) {
  const { values, origins, instance, name, hostRefusal } = profile
  if (hostRefusal) throw hostRefusal
  if (instance?.sandbox)
    throw new RelayError('settings', `Profile ${name} needs no setup: its sandbox makes the client`)
  if (instance?.store === 'memory') throw onlyInMemory(instance, 'what setup stores')
  if (values.store === 'memory')
    throw new RelayError('settings', '--store memory would lose the client as soon as this command ends')
  const given = [origins.clientId, origins.clientSecret].flatMap((origin) => origin?.text ?? [])
  if (given.length > 0)
    throw new RelayError(
      'settings',
      `${given.join(' and ')} would win over what relay setup stores. Remove ${given.length > 1 ? 'both' : 'it'}, then run ${profile.command('setup')} again`,
    )
  const address = publicAddress(profile)
  if (new URL(address).port === '0')
    throw new RelayError('settings', 'The callback address needs a fixed port. Give one with --port')
  const host = await openNamedHost(profile)
  return { profile, host, callbackUrl: redirectUri(address, host.name) }
}

// An App

const WAITING = 'Waiting up to 15 minutes for you to register the App there. Ctrl-C cancels.'

/** Registers an App in the browser. `save` stores it before the browser's page reports success. */
async function registerApp(
  shell: Shell,
  flags: SetupFlags,
  { profile, host, callbackUrl }: Plan,
  { apps, save }: { readonly apps: AppsApi; readonly save: Save },
): Promise<RegisteredApp> {
  const hook = await webhookOf(profile, host, flags.appHook === true)
  // Loaded late, with the HTTP server that it needs.
  const { runManifestFlow } = await import('../../auth/manifest-flow.js')
  const registered = await runManifestFlow({
    apps,
    providerUrl: host.url,
    organization: flags.org,
    // Names of Apps are unique in all of GitHub.
    app: { name: `relay-${randomBytes(4).toString('hex')}`, callbackUrl, hook },
    log: shell.out.log,
    command: profile.command,
    signal: shell.signal,
    onListening: (address) =>
      showAddress(shell, address, { opens: flags.browser !== false, waiting: WAITING }),
    store: (app) => save(app.client, app, hook?.active ? hook.url : undefined),
  })
  await agreeOnSecret(shell, profile, apps, registered)
  return registered
}

/**
 * Chooses the address of the App's own webhook: the tunnel, or the public address. Undefined for an inactive webhook
 * if the code host cannot reach relay.
 */
async function webhookOf(
  profile: Profile,
  host: CodeHost,
  active: boolean,
): Promise<{ readonly url: string; readonly active: boolean } | undefined> {
  const address = publicAddress(profile)
  // A code host on this machine reaches it too.
  const isReachable = isLoopback(new URL(host.url).hostname) || !isLoopback(new URL(address).hostname)
  const url = tunnelAddress(profile) ?? (isReachable ? `${address}/webhook` : undefined)
  if (url !== undefined) return { url, active }
  if (!active) return undefined
  throw new RelayError(
    'settings',
    `The code host cannot reach ${address}. ${stopFirst(profile, 'Start ')}${profile.command('serve --tunnel')} first, or give --public-url`,
  )
}

/**
 * Makes the App's webhook sign with the profile's secret, which hooks at the code host may already use. A profile
 * without a secret uses that of the App. A failure is only a warning, since the App itself is registered.
 */
async function agreeOnSecret(
  { out }: Shell,
  profile: Profile,
  apps: AppsApi,
  { app, webhookSecret }: RegisteredApp,
): Promise<void> {
  if (!webhookSecret) return
  const { values } = profile
  try {
    const { webhookSecret: given } = values
    const { store } = await profile.createData()
    const secret = given === undefined ? await makeProfileSecret(store, webhookSecret) : new Secret(given)
    if (secret.reveal() === webhookSecret.reveal()) return
    const shared = sharedSecretText(profile.origins)
    if (shared !== undefined) out.log.warn(shared)
    await apps.as(app, { command: profile.command }).changeHook({ secret })
  } catch (error) {
    const { message } = toRelayError(error)
    const reveal = profile.command('config --reveal webhookSecret')
    const next = `Enter the secret that ${reveal} prints in the settings of the App`
    out.log.warn(`the App's webhook has another secret than this profile: ${message}. ${next}`)
  }
}

// An OAuth application

const NAME = 'relay'

/** Guides the user to register an OAuth application in the browser, and asks for its id and secret. */
async function registerByHand(
  shell: Shell,
  flags: SetupFlags,
  { host, callbackUrl }: Plan,
  prompt: Prompt,
): Promise<OAuthClient> {
  // A program that pipes the values in has them already.
  if (canAsk(shell)) {
    shell.out.say('Register an OAuth application with these values:')
    for (const line of table(host.words.applicationForm({ name: NAME, callbackUrl })))
      shell.out.say(t`  ${line}`)
    await showAddress(shell, host.registrationPage, {
      opens: flags.browser !== false,
      waiting: `${host.words.registrationEnd}. Ctrl-C cancels.`,
    })
  }
  const id = await prompt.text('Client id')
  const secret = await prompt.text('Client secret (not shown)', { hidden: true })
  return { id, secret: new Secret(secret) }
}

/**
 * Registers an OAuth application with an access token of the user, which is not stored. Undefined if the user has none.
 */
async function registerWithToken(
  shell: Shell,
  { host, callbackUrl }: Plan,
  prompt: Prompt,
): Promise<OAuthClient | undefined> {
  const { signal, out } = shell
  if (!host.register) return undefined
  const question = `Access token ${host.words.registrationToken} (not shown; Enter for none)`
  const token = await prompt.text(question, { hidden: true, optional: true })
  if (token === '') return undefined
  try {
    return await host.register(token, { name: NAME, redirectUri: callbackUrl }, { signal })
  } catch (error) {
    // A person can do by hand what the token may not.
    if (!canAsk(shell) || !(error instanceof RelayError && error.kind === 'forbidden')) throw error
    out.log.warn(error.message)
    return undefined
  }
}

interface SetUp {
  readonly profile: Profile
  readonly client: OAuthClient
  readonly app: RegisteredApp | undefined
  readonly checks: Awaited<ReturnType<typeof diagnose>>
}

async function report(
  shell: Shell,
  flags: SetupFlags,
  profile: Profile,
  client: OAuthClient,
  app?: RegisteredApp,
): Promise<SetUp> {
  const { out, json } = shell
  const { values, name } = profile
  // The checks take a while.
  if (!json) {
    out.say(`Stored the client ${client.id} of ${values.providerUrl} in profile ${name}`)
    if (app) out.say(`Install the App on your repositories: ${app.installUrl}`)
  }
  return { profile, client, app, checks: await diagnose(shell, flags) }
}

function print({ profile, checks }: SetUp, out: Output): void {
  printChecks(checks, out)
  const login = profile.command('login')
  out.say(
    profile.instance
      ? `${restartText(profile)}, which does not know this client yet. Then run ${login}`
      : `Next: ${login}`,
  )
}

function json({ profile, client, app, checks }: SetUp) {
  const { provider, providerUrl } = profile.values
  const described = app ? { id: app.app.id, slug: app.app.slug, installUrl: app.installUrl } : null
  return { provider, providerUrl, clientId: client.id, app: described, checks }
}
