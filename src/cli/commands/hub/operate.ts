import { isLoopback, parseUrl } from '../../../base/address.js'
import { RelayError } from '../../../base/errors.js'
import { parseDuration, systemClock } from '../../../base/time.js'
import { type Channel, CHANNEL_BOUNDS, HubRecords, type Invitation } from '../../../hub/records.js'
import { Journal } from '../../../journal/journal.js'
import { hubPlace } from '../../../serve/hub-profile.js'
import type { Database } from '../../../store/open.js'
import type { Flags, Shell } from '../../command.js'
import { Prompt } from '../../input.js'
import { PARSERS } from '../../settings/parse.js'
import type { LoadedSettings } from '../../settings/read.js'
import { hubCommandsOf, openHubData, readHubSettings } from './profile.js'

export interface InviteFlags extends Flags {
  readonly name?: string
  readonly uses?: string
  readonly expires?: string
  readonly channelMax?: string
  readonly channelRate?: string
}

/** A channel for its operator. */
export interface ChannelState extends Pick<Channel, 'name' | 'createdAt' | 'isWithdrawn'> {
  readonly channel: string
  readonly waiting: number
  /** Bytes of the waiting requests. */
  readonly bytes: number
  /** Name of the machine that is connected. */
  readonly machine: string | undefined
}

/** In place of an address that no hub of the profile has had yet. */
const SOME_ADDRESS = 'https://<its address>'

export async function invite(shell: Shell, flags: InviteFlags) {
  const { name = '', uses = '1', expires = '1d', channelMax, channelRate } = flags
  const { maxBytes, maxRequests } = CHANNEL_BOUNDS
  if (!/^[\p{L}\p{N} ._@-]{0,64}$/u.test(name))
    throw new RelayError('usage', '--name takes up to 64 letters, digits, spaces and . _ @ -')
  const given = {
    name,
    uses: wholeNumber('--uses', uses, 1000),
    expiresAt: expiry(expires),
    maxBytes: channelMax === undefined ? maxBytes : sizeOf(channelMax),
    maxRequests:
      channelRate === undefined ? maxRequests : wholeNumber('--channel-rate', channelRate, 1_000_000),
  }
  await using hub = await open(shell, flags, true)
  const token = await hub.records.invite(given)
  const host = parseUrl(hub.address)?.hostname
  const isNear = host !== undefined && isLoopback(host)
  return { token, tunnel: hub.address, isNear, expiresAt: given.expiresAt }
}

export async function listChannels(shell: Shell, flags: Flags) {
  await using hub = await open(shell, flags, false)
  const { records, database, loaded } = hub
  const journal = new Journal(database.sql)
  const counts = await journal.counts()
  const states: ChannelState[] = []
  for (const { id, name, createdAt, isWithdrawn } of await records.channels()) {
    const session = isWithdrawn ? undefined : await records.session(id)
    const waiting = counts.get(id)?.waiting ?? 0
    const bytes = waiting === 0 ? 0 : await journal.waitingBytes(id)
    states.push({ channel: id, name, createdAt, isWithdrawn, waiting, bytes, machine: session?.machine })
  }
  const invitations = await records.invitations()
  return { channels: states, invitations, invite: hubCommandsOf(loaded)('hub invite') }
}

/** The revoked channel or invitation. */
export type Revoked = { readonly channel: string; readonly purged: boolean } | { readonly invitation: string }

export interface RevokeFlags extends Flags {
  readonly channel: string
  readonly purge?: boolean
  readonly yes?: boolean
}

export async function revoke(shell: Shell, flags: RevokeFlags): Promise<Revoked> {
  await using hub = await open(shell, flags, false)
  const { channel, invitation } = await find(hub, flags.channel, await hub.records.invitations())
  if (invitation) {
    await hub.records.cancel(invitation)
    return { invitation: invitation.id }
  }
  const { id } = channel
  const { purge = false, yes = false } = flags
  if (!purge) {
    await hub.records.withdraw(id)
    return { channel: id, purged: false }
  }
  const journal = new Journal(hub.database.sql)
  const waiting = (await journal.counts()).get(id)?.waiting ?? 0
  const remains = 'Nothing was removed'
  using prompt = new Prompt(shell)
  const how = `${remains}. To remove it without being asked, give --yes`
  if (!yes)
    await prompt.agree(`Remove channel ${id.slice(0, 8)}… and the ${waiting} requests that wait for it?`, {
      how,
      remains,
    })
  // Closed first, so that nothing comes meanwhile.
  await hub.records.withdraw(id)
  await journal.removeOf(id)
  await hub.records.remove(id)
  return { channel: id, purged: true }
}

export async function renew(
  shell: Shell,
  flags: Flags & { readonly channel: string; readonly expires?: string },
) {
  const expiresAt = expiry(flags.expires ?? '1d')
  await using hub = await open(shell, flags, false)
  const { channel } = await find(hub, flags.channel, [])
  if (!channel) throw unknownChannel(hub, flags.channel)
  const { id } = channel
  const token = await hub.records.renew(id, expiresAt)
  if (token === undefined) throw unknownChannel(hub, flags.channel)
  return { channel: id, token, tunnel: hub.address }
}

interface OpenHub extends AsyncDisposable {
  readonly loaded: LoadedSettings
  readonly database: Database
  readonly records: HubRecords
  /** Address of the hub for workstations. */
  readonly address: string
}

async function open(shell: Shell, flags: Flags, create: boolean): Promise<OpenHub> {
  const loaded = await readHubSettings(shell, flags)
  const database = await openHubData(shell, loaded, create)
  const clock = shell.seams?.clock ?? systemClock
  return {
    loaded,
    database,
    records: new HubRecords(database.store, clock),
    address: (await hubPlace(database)) ?? SOME_ADDRESS,
    [Symbol.asyncDispose]: () => database[Symbol.asyncDispose](),
  }
}

/** Fewest characters of an address that identify a channel. */
const MIN_PREFIX = 4

type Found =
  | { readonly channel: Channel; readonly invitation?: undefined }
  | { readonly channel?: undefined; readonly invitation: Invitation }

/**
 * Finds a channel, or one of these invitations, by its name or the beginning of its address or id. The invitation that
 * renews a channel has the channel's name, which means the channel.
 * @throws RelayError `no_match`, `usage` for several
 */
async function find(hub: OpenHub, text: string, invitations: readonly Invitation[]): Promise<Found> {
  const prefix = text.replace(/…$/, '')
  const begins = (id: string): boolean => prefix.length >= MIN_PREFIX && id.startsWith(prefix)
  const isNamed = (name: string): boolean => name !== '' && name === text
  const found: readonly Found[] = [
    ...(await hub.records.channels())
      .filter(({ id, name }) => isNamed(name) || begins(id))
      .map((channel) => ({ channel })),
    ...invitations
      .filter(({ id, name, renews }) => (renews === null && isNamed(name)) || begins(id))
      .map((invitation) => ({ invitation })),
  ]
  const [one] = found
  if (!one) throw unknownChannel(hub, text)
  if (found.length > 1)
    throw new RelayError(
      'usage',
      `Several are meant by ${text}. Give the first characters of its address, or of the invitation, as ${hubCommandsOf(hub.loaded)('hub list')} shows them`,
    )
  return one
}

function unknownChannel({ loaded }: OpenHub, text: string): RelayError {
  return new RelayError(
    'no_match',
    `There is no channel ${text}. ${hubCommandsOf(loaded)('hub list')} shows those there are`,
  )
}

function wholeNumber(flag: string, text: string, max: number): number {
  const value = /^\d{1,9}$/.test(text) ? Number(text) : 0
  if (value < 1 || value > max)
    throw new RelayError('usage', `${flag} must be a whole number from 1 to ${max}`)
  return value
}

function expiry(text: string): number {
  const ms = parseDuration(text)
  if (ms === undefined) throw new RelayError('usage', '--expires must be a duration such as 12h or 30d')
  return Date.now() + ms
}

function sizeOf(text: string): number {
  try {
    return PARSERS.keepMax(text)
  } catch (cause) {
    throw new RelayError('usage', '--channel-max must be a size such as 500MiB or 1GiB', { cause })
  }
}
