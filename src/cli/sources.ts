import type { InstanceSettings } from './settings/join.js'
import { pathOf, shownSource } from '../base/source-names.js'
import { hostInUrl, isLoopback } from '../base/address.js'
import { RelayError } from '../base/errors.js'
import { Secret } from '../base/secret.js'
import { secretVariable } from '../base/secret-variables.js'
import { type ReadSource, type SourceSettings, type NamedScheme } from '../base/settings.js'
import { didYouMean, shellWord } from '../base/text.js'
import { senderOf } from '../senders/senders.js'
import { isOfCodeHost, type RecordedDelivery } from '../replay/fixture.js'
import { checkTunnel, hubOf } from '../serve/tunnel.js'
import { isEmptySecret } from '../senders/secrets.js'
import type { Database } from '../store/open.js'
import { makeOwnKey, readOwnKey, readProfileSources } from '../webhook/profile-secret.js'
import type { Source } from '../senders/source.js'
import { namesElsewhere } from '../http/reached.js'
import type { Shell } from './command.js'
import { publicAddress } from './addresses.js'
import { type Advised, commandFor, restartText } from './advice.js'
import type { Profile } from './profile.js'
import { requireSecret, webhookSecret } from './webhook-secret.js'
import { isUnsigned, parseSource } from '../senders/source-text.js'
import type { Values } from './settings/parse.js'
import { isOfFolder, type LoadedSettings, type Origin, secretReader } from './settings/read.js'

/** A source, and where it is set. */
export interface ListedSource extends NamedScheme {
  /** Origin of the source. */
  readonly origin: string
}

/** A source of the settings. */
export interface SetSource extends ReadSource, ListedSource {
  /** Origin of its secret. Undefined without a secret. */
  readonly secretOrigin: Origin | undefined
  /**
   * A variable with a secret that is not used, because only the folder names its scheme, which sends the secret itself.
   */
  readonly withheld: Origin | undefined
}

const PROFILE: Origin = { kind: 'profile', text: 'profile' }

/**
 * Reads the sources that are set: those of the running instance, of the settings, and those of `relay source add`; the
 * first of each name.
 *
 * The secret of each is from its variable, else from the profile, but not for another scheme that only a project's file
 * names, since some schemes send the secret itself. For such a scheme a variable is used only if it is set next to it
 * in `.env`, and for a source that has the name of its sender, such as `gitlab`. A source without a secret has an empty
 * one, which proves nothing.
 * @param data the profile's data; undefined if it has none
 * @throws RelayError `settings` for a file of a secret that cannot be read; `storage`
 */
export async function readSources(
  shell: Shell,
  loaded: InstanceSettings,
  data: Database | undefined,
): Promise<readonly SetSource[]> {
  const { all: listed, stored } = await listSources(loaded, data)
  const readSecret = await secretReader(shell)
  const sources: SetSource[] = []
  for (const { name, scheme, origin, ofFolder } of listed) {
    const variable = secretVariable(name)
    const set = [await readSecret(variable), await readSecret(`${variable}_PREVIOUS`)]
    const isSent = ofFolder && scheme !== name && senderOf(scheme).coverage() === 'sender'
    const withheld = isSent
      ? set.find((each) => each && each.origin.kind !== ofFolder.kind)?.origin
      : undefined
    const [current, previous] = withheld ? [] : set
    const isStored = stored.some((each) => each.name === name && each.scheme === scheme)
    const own = stored.find((each) => each.name === name && (isStored || !ofFolder))?.secrets
    const first = current ? new Secret(current.text) : (own?.current ?? new Secret(''))
    const kind = senderOf(scheme).keyPairFor(first)
    const secrets = {
      current: first,
      previous: previous ? new Secret(previous.text) : current ? undefined : own?.previous,
      ...(kind && { own: await readOwnKey(data?.store, name, kind) }),
    }
    const secretOrigin = current?.origin ?? (own && PROFILE)
    const alone = isStored ? undefined : ofFolder?.text
    sources.push({ name, scheme, secrets, origin, secretOrigin, withheld, ofFolder: alone })
  }
  return sources
}

/** Lists the names of the sources. Reads no file of a secret, which can be a pipe. @throws RelayError `storage` */
export async function sourceNames(profile: Profile, data: Database | undefined): Promise<readonly string[]> {
  return (await listSources(profile, data)).all.map(({ name }) => name)
}

/** A source without its secret. */
interface Listed extends ListedSource {
  /** The only file that names it, if that is of this folder or of the folder in which the instance was started. */
  readonly ofFolder?: Origin | undefined
}

/** Lists the sources, the first of each name, and the profile's own ones with their secrets. */
export async function listSources(
  { values, origins, instance }: InstanceSettings,
  data: Database | undefined,
) {
  const stored = data ? await readProfileSources(data.store) : []
  const set = (values.sources ?? []).map((text) => ({
    ...parseSource(text),
    origin: origins.sources?.text ?? '',
    ofFolder: origins.sources && isOfFolder(origins.sources) ? origins.sources : undefined,
  }))
  const own = stored.map((each) => ({ ...each, origin: PROFILE.text, ofFolder: undefined }))
  const running = (instance?.sources ?? []).map(({ name, scheme, ofFolder }) => {
    const isOwn = set.some((each) => each.name === name && each.scheme === scheme && !each.ofFolder)
    const started =
      isOwn || ofFolder === undefined ? undefined : ({ kind: 'project', text: ofFolder } as const)
    return { name, scheme, origin: `process ${instance?.pid}`, ofFolder: started }
  })
  const all: readonly Listed[] = [...running, ...set, ...own]
  return { all: all.filter(({ name }, i) => all.findIndex((other) => other.name === name) === i), stored }
}

/**
 * Makes a function that returns the address to enter at a sender: that of the running instance's tunnel, else one below
 * the public address.
 */
export function addressesOf(profile: Profile): (source: string) => string {
  const tunnels = profile.instance?.tunnels ?? []
  return (name) => tunnels.find(({ source }) => source === name)?.url ?? publicAddress(profile) + pathOf(name)
}

/** Advice where the running instance lacks a source that this shell's settings name. */
export function restartHere(profile: Profile): string {
  return `${restartText(profile)} from here: its own settings do not name the source`
}

/** True if a source lacks the secret that its scheme needs. */
export function lacksSecret({ scheme, secrets }: SourceSettings): boolean {
  return !isUnsigned(scheme) && isEmptySecret(secrets.current)
}

/**
 * Checks the scheme of a source. @throws RelayError `settings` for a source without a secret, whose scheme sends it, if
 * only the folder names that scheme
 */
function checkNamed(about: Advised, { name, scheme, origin, ofFolder }: SetSource): void {
  if (ofFolder === undefined || scheme === name || senderOf(scheme).coverage() !== 'sender') return
  throw new RelayError(
    'settings',
    `There is no secret for ${name}. Only this folder names its scheme (${origin}), which sends the secret itself. If you know that ${name} sends it so, store it with ${commandFor(about, `source add ${shellWord(`${name}=${scheme}`)}`)}`,
  )
}

/** Checks the secret of a source. @throws RelayError `settings` if it is {@link SetSource.withheld} */
function checkWithheld(about: Advised, { name, scheme, origin, withheld }: SetSource): void {
  if (!withheld) return
  const words = shellWord(`${name}=${scheme}`)
  throw new RelayError(
    'settings',
    `${withheld.text} is not used for the source ${name}: only this folder names its scheme (${origin}), which sends the secret itself. If that is right, name it yourself: with ${commandFor(about, `serve --source ${words}`)}, or store the secret with ${commandFor(about, `source add ${words}`)}`,
  )
}

/** Finds the source with a name. @throws RelayError `usage` that lists the existing ones */
export function sourceNamed(
  about: Advised,
  sources: readonly SourceSettings[],
  name: string,
): SourceSettings {
  const found = sources.find((source) => source.name === name)
  if (found) return found
  const names = sources.map((source) => source.name)
  const known = names.length === 0 ? 'There are none yet' : `There are: ${names.join(', ')}`
  throw new RelayError(
    'usage',
    `There is no source of that name${didYouMean(name, names)}. ${known}. ${commandFor(about, 'source add <scheme>')} adds one`,
  )
}

/** Adds relay's own key to sources whose senders sign with one, where it is not made yet. @throws RelayError `storage` */
async function withOwnKeys(
  sources: readonly SetSource[],
  data: Database | undefined,
): Promise<readonly SetSource[]> {
  const own = async (source: SetSource): Promise<SetSource> => {
    const { name, scheme, secrets } = source
    const kind = senderOf(scheme).keyPairFor(secrets.current)
    if (!kind || secrets.own || !data) return source
    return { ...source, secrets: { ...secrets, own: await makeOwnKey(data.store, name, kind) } }
  }
  return Promise.all(sources.map(own))
}

/**
 * Returns the sources of a service.
 * @throws RelayError `settings` for one without a secret; for one without a proof, if other machines may reach it and
 * the user did not allow that; `usage` for one that cannot have a tunnel; as `readSources`
 */
export async function servedSources(
  shell: Shell,
  loaded: LoadedSettings,
  { data, allowUnsigned }: { readonly data: Database | undefined; readonly allowUnsigned: boolean },
): Promise<readonly SetSource[]> {
  const sources = await readSources(shell, loaded, data)
  const { values } = loaded
  const about = loaded
  const lacking = sources.filter(lacksSecret)
  for (const each of lacking) {
    checkWithheld(about, each)
    checkNamed(about, each)
  }
  if (lacking.length > 0) {
    const missing = lacking.map(({ name }) => name)
    const adds = lacking.map(({ name, scheme }) => {
      // Another command does not know a source of a flag.
      const text = name === scheme ? name : `${name}=${scheme}`
      return commandFor(about, `source add ${text.includes(' ') ? shellWord(text) : text}`)
    })
    throw new RelayError(
      'settings',
      `There is no secret for ${missing.join(', ')}. Store it with ${adds.join(', ')}, or set ${missing.map(secretVariable).join(', ')}`,
    )
  }
  const { tunnel, hubToken } = values
  const asked = { tunnel, hubToken: hubToken === undefined ? undefined : new Secret(hubToken), sources }
  if (!allowUnsigned) {
    const open = sources.find(({ scheme }) => isUnsigned(scheme))
    const reach = open && reachFromElsewhere(values, await hubOf(asked, data?.store))
    if (reach !== undefined)
      throw new RelayError(
        'settings',
        `Nothing proves what the source ${open?.name} sends, and ${reach}. Start without it, or allow that with --allow-unsigned`,
      )
  }
  await checkTunnel(asked, data?.store, (name) =>
    sources.some((each) => each.name === name && each.origin === PROFILE.text)
      ? commandFor(about, `source remove ${name}`)
      : undefined,
  )
  return withOwnKeys(sources, data)
}

/** Says how other machines send to a source. Undefined if none can. `hub`: address of the hub that the tunnel uses. */
function reachFromElsewhere({ host, publicUrl, allowHost = [] }: Values, hub: string | undefined) {
  const reached = [hostInUrl(host), ...namesElsewhere({ publicUrl, allowedHosts: allowHost })]
  const outside = reached.find((name) => !isLoopback(name))
  if (outside !== undefined) return `other machines can reach it at ${outside}`
  return hub === undefined ? undefined : `anybody who knows its address at the hub ${hub} can send it`
}

/** The source of a recorded delivery, with the secret that signs for it. */
export interface RecordedSource extends Source {
  /** Origin of the secret, for a person: a variable, `profile`. Undefined if the source is not the code host. */
  readonly place?: string
  /** Path at which relay receives its deliveries. */
  readonly path: string
  /**
   * True if the user has named its scheme: it is a code host's, or of a source in the settings. A stranger can write
   * any into a file.
   */
  readonly isNamed: boolean
}

/**
 * Makes a function that finds the source of any recorded delivery: the code host, or one of the settings. Settings are
 * read once.
 * @returns a function that throws RelayError `settings` without a secret for the `purpose` ("no webhook secret to …");
 * `usage` for an unknown source
 */
export function openSources(
  shell: Shell,
  profile: Profile,
  {
    secretEnv,
    data,
    purpose,
    named,
    usesOwnKeys = false,
  }: {
    readonly secretEnv: string | undefined
    readonly data: Database | undefined
    readonly purpose: string
    /** Source that a flag of the command names. */
    readonly named?: string | undefined
    /** True if a fixture with its own key is signed with that. */
    readonly usesOwnKeys?: boolean
  },
): (recorded: RecordedDelivery) => Promise<RecordedSource> {
  const { webhookSecretPrevious: previous } = profile.values
  let found: ReturnType<typeof webhookSecret> | undefined
  let sources: ReturnType<typeof readSources> | undefined
  return async ({ provider: name, scheme, secret }) => {
    const set = shownSource(name) === undefined ? [] : await (sources ??= readSources(shell, profile, data))
    const known = set.find((source) => source.name === name)
    // A file may name another scheme than the source has.
    const schemeText = shownSource(name) === undefined ? name : (known?.scheme ?? scheme ?? name)
    // A folder may send a secret of its own.
    const isOwn =
      secretEnv === undefined && known?.secretOrigin !== undefined && isOfFolder(known.secretOrigin)
    const isNamed =
      shownSource(name) === undefined || (known ? isOwn || known.ofFolder === undefined : name === named)
    const about = { name, sender: senderOf(schemeText), isNamed }
    const isHost = known === undefined && isOfCodeHost({ provider: name, scheme: schemeText })
    const path = isHost ? '/webhook' : pathOf(name)
    // The fixture's key is not the user's, so any scheme may send it.
    if (usesOwnKeys && secret !== undefined)
      return { ...about, path, secrets: { current: new Secret(secret) }, isNamed: true }
    if (!isHost && secretEnv === undefined) {
      const { secrets } = known ?? sourceNamed(profile, set, name)
      if (!lacksSecret({ name, scheme: schemeText, secrets })) return { ...about, path, secrets }
      if (known) checkWithheld(profile, known)
      if (known) checkNamed(profile, known)
      throw new RelayError(
        'settings',
        `There is no secret of ${name} to ${purpose}: set ${secretVariable(name)}, or store it with ${profile.command(`source add ${name}`)}`,
      )
    }
    found ??= webhookSecret(shell, profile, { secretEnv, data })
    const { secret: current, place } = requireSecret(await found, purpose)
    const hasPrevious = secretEnv === undefined && previous !== undefined
    const secrets = { current, previous: hasPrevious ? new Secret(previous) : undefined }
    return { ...about, path, secrets, ...(isHost && { place }) }
  }
}
