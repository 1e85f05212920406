import { hash, randomBytes } from 'node:crypto'
import { z } from 'zod/mini'
import { RelayError } from '../base/errors.js'
import type { Clock } from '../base/time.js'
import type { Store } from '../store/kv.js'
import type { Tx } from '../store/sql.js'
import { LEASE_MS, MAX_WAIT_MS, sessionKey } from './protocol.js'

// Records of a hub besides the requests: invitations, channels and sessions, as records of its profile.

/** Bounds of a channel, so that a stranger who knows its address cannot fill the disk. */
export interface ChannelBounds {
  /** Most bytes that wait for its workstation. */
  readonly maxBytes: number
  /** Most requests in a minute. */
  readonly maxRequests: number
}

/** 256 MiB: 5,000 requests of 50 KiB. 12,000 a minute: a burst of 5,000 fits twice. */
export const CHANNEL_BOUNDS: ChannelBounds = { maxBytes: 268_435_456, maxRequests: 12_000 }

const bounds = { maxBytes: z.number(), maxRequests: z.number() }

const invitation = z.object({
  v: z.literal(1),
  uses: z.int().check(z.positive()),
  expiresAt: z.number(),
  /** The channel that gets another key, instead of a new one. */
  renews: z.nullable(z.string()),
  name: z.string(),
  ...bounds,
})

const channel = z.object({
  v: z.literal(1),
  id: z.string(),
  /** Name that the operator gave with the invitation; empty without one. */
  name: z.string(),
  /** `verifierOf` the workstation's key. Kept when it is withdrawn, so that the workstation can learn why. */
  verifier: z.string(),
  isWithdrawn: z.boolean(),
  /** Number of the last opening, in the count of its workstations. */
  opened: z._default(z.number(), 0),
  /** Digest of the invitation that may give it another key: the last one that was made. */
  renewal: z._default(z.nullable(z.string()), null),
  /** Milliseconds since 1970-01-01 UTC, as all times here. */
  createdAt: z.number(),
  /** Largest body that its workstation accepts. Null until the workstation has connected. */
  maxBody: z.nullable(z.number()),
  ...bounds,
})

const session = z.object({
  v: z.literal(1),
  id: z.string(),
  /** Key of its proofs. */
  key: z.string(),
  holder: z.string(),
  machine: z.string(),
  since: z.number(),
  seq: z.number(),
  answers: z.record(z.string(), z.number()),
})

export type Channel = Readonly<z.infer<typeof channel>>
/** An invitation that can be used, with its digest as its id. */
export type Invitation = Readonly<z.infer<typeof invitation>> & { readonly id: string }
export type Session = Readonly<z.infer<typeof session>>

const INVITATION = 'hub-invitation:'
const CHANNEL = 'hub-channel:'
const SESSION = 'hub-session:'
/** Result of a join, stored so that one whose answer was lost can be repeated. */
const JOINED = 'hub-joined:'
/** A day: a workstation repeats a join within seconds. */
const JOINED_MS = 86_400_000

/** Prefix for people and secret scanners to recognize an invitation. */
const TOKEN_PREFIX = 'relay-hub-'

const UNKNOWN_INVITATION =
  'This invitation is unknown, used up or expired. The operator of the hub makes another with relay hub invite'

export interface Invite extends ChannelBounds {
  readonly uses: number
  /** Milliseconds since 1970-01-01 UTC. */
  readonly expiresAt: number
  readonly name: string
}

/** Result of an opening: the session, the session of another workstation, or the number to exceed. */
export type OpenedSession =
  | { readonly session: Session; readonly nonce: string }
  | { readonly heldBy: Pick<Session, 'machine' | 'since'> }
  | { readonly last: number }

/** The records of a hub. Every method rejects with RelayError `storage` when the database fails. */
export class HubRecords {
  readonly #store: Store
  readonly #clock: Clock

  constructor(store: Store, clock: Clock) {
    this.#store = store
    this.#clock = clock
  }

  /** Makes an invitation. Only its digest is stored. */
  async invite(invite: Invite): Promise<string> {
    return this.#issue({ ...invite, renews: null })
  }

  /**
   * Withdraws a channel's key, and makes an invitation, usable once, that gives the channel another key. It replaces
   * the earlier invitation. Undefined if there is no such channel.
   */
  async renew(id: string, expiresAt: number): Promise<string | undefined> {
    const { token, digest } = makeToken()
    const found = await this.#withdraw(id, { digest, expiresAt })
    return found && token
  }

  /** All invitations that can be used, those that expire first before others. */
  async invitations(): Promise<readonly Invitation[]> {
    const keys = await this.#store.list(INVITATION)
    const found = await Promise.all(
      keys.map(async (key) => {
        const value = read(invitation, await this.#store.get(key))
        return value && { ...value, id: key.slice(INVITATION.length) }
      }),
    )
    return found
      .filter((each) => each !== undefined)
      .toSorted((one, other) => one.expiresAt - other.expiresAt)
  }

  /** Ends an invitation. */
  async cancel({ id }: Pick<Invitation, 'id'>): Promise<void> {
    await this.#store.delete(INVITATION + id)
  }

  /**
   * Uses an invitation for a workstation's verifier: makes a channel, or gives one this verifier. The same again gives
   * the same channel.
   * @throws RelayError `forbidden` for an invitation that is unknown, used up or expired
   */
  async join(token: string, verifier: string): Promise<Channel> {
    const digest = hash('sha256', token, 'base64url')
    const key = INVITATION + digest
    const again = JOINED + hash('sha256', `${token} ${verifier}`, 'base64url')
    const made = randomBytes(24).toString('base64url')
    const now = this.#clock()
    const joined = await this.#store.update(function* (records): Tx<Channel | undefined> {
      const before = yield* records.get<string>(again)
      if (before !== undefined) return read(channel, yield* records.get(CHANNEL + before))
      const found = read(invitation, yield* records.get(key))
      if (!found) return undefined
      const { uses, renews, name, maxBytes, maxRequests } = found
      const old = renews === null ? undefined : read(channel, yield* records.get(CHANNEL + renews))
      if (renews !== null && old?.renewal !== digest) return undefined
      const fresh = {
        v: 1 as const,
        id: made,
        opened: 0,
        name,
        createdAt: now,
        maxBody: null,
        maxBytes,
        maxRequests,
      }
      const next: Channel = { ...fresh, ...old, verifier, isWithdrawn: false, renewal: null }
      if (uses > 1) yield* records.put(key, { ...found, uses: uses - 1 }, found.expiresAt)
      else yield* records.delete(key)
      yield* records.put(CHANNEL + next.id, next)
      yield* records.put(again, next.id, now + JOINED_MS)
      yield* records.delete(SESSION + next.id)
      return next
    })
    if (!joined) throw new RelayError('forbidden', UNKNOWN_INVITATION)
    return joined
  }

  async channel(id: string): Promise<Channel | undefined> {
    const found = await this.#store.get(CHANNEL + id)
    return found === undefined ? undefined : read(channel, found)
  }

  /** All channels, the oldest first. */
  async channels(): Promise<readonly Channel[]> {
    const keys = await this.#store.list(CHANNEL)
    const found = await Promise.all(keys.map((key) => this.channel(key.slice(CHANNEL.length))))
    return found
      .filter((each) => each !== undefined)
      .toSorted((one, other) => one.createdAt - other.createdAt)
  }

  /**
   * Withdraws a channel's key, ends the invitation that would renew it, and closes its address. Undefined if there is no
   * such channel.
   */
  withdraw(id: string): Promise<Channel | undefined> {
    return this.#withdraw(id)
  }

  /** Removes all records of a channel. */
  async remove(id: string): Promise<void> {
    await this.#store.update(function* (records): Tx<void> {
      const found = read(channel, yield* records.get(CHANNEL + id))
      if (typeof found?.renewal === 'string') yield* records.delete(INVITATION + found.renewal)
      for (const key of [CHANNEL, SESSION]) yield* records.delete(key + id)
    }, NOTICE)
  }

  #withdraw(
    id: string,
    renewal?: { readonly digest: string; readonly expiresAt: number },
  ): Promise<Channel | undefined> {
    return this.#store.update(function* (records): Tx<Channel | undefined> {
      const found = read(channel, yield* records.get(CHANNEL + id))
      if (!found) return undefined
      if (found.renewal !== null) yield* records.delete(INVITATION + found.renewal)
      if (renewal) {
        const { name, maxBytes, maxRequests } = found
        const { digest, expiresAt } = renewal
        const next = { v: 1, uses: 1, expiresAt, renews: id, name, maxBytes, maxRequests }
        yield* records.put(INVITATION + digest, next, expiresAt)
      }
      yield* records.put(CHANNEL + id, { ...found, isWithdrawn: true, renewal: renewal?.digest ?? null })
      return found
    }, NOTICE)
  }

  /** The open session of a channel. */
  async session(id: string): Promise<Session | undefined> {
    return read(session, await this.#store.get(SESSION + id))
  }

  /** Opens a session, and replaces one of the same holder. A repeated opening opens none. */
  async open(
    { id: channelId, verifier }: Channel,
    given: Pick<Session, 'holder' | 'machine' | 'answers'> & {
      readonly nonce: string
      readonly seq: number
      readonly maxBody: number
    },
  ): Promise<OpenedSession> {
    const { nonce: theirs, seq, maxBody, ...rest } = given
    const ours = randomBytes(32).toString('base64url')
    const now = this.#clock()
    const next: Session = {
      v: 1,
      id: randomBytes(32).toString('base64url'),
      key: sessionKey(verifier, { theirs, ours }),
      since: now,
      seq: 0,
      ...rest,
    }
    return this.#store.update(function* (records): Tx<OpenedSession> {
      const found = read(channel, yield* records.get(CHANNEL + channelId))
      if (found && seq <= found.opened) return { last: found.opened }
      const held = read(session, yield* records.get(SESSION + channelId))
      const isHeld = held !== undefined && held.holder !== next.holder
      if (found)
        yield* records.put(CHANNEL + channelId, { ...found, opened: seq, ...(!isHeld && { maxBody }) })
      if (isHeld) return { heldBy: held }
      yield* records.put(SESSION + channelId, next, now + LEASE_MS)
      return { session: next, nonce: ours }
    }, NOTICE)
  }

  /**
   * Extends a session at a call, whose number must be larger than that of every earlier call. False if the session has
   * ended, or the call is a repeated one.
   */
  async touch(channelId: string, { id }: Pick<Session, 'id'>, seq?: number): Promise<boolean> {
    const until = this.#clock() + MAX_WAIT_MS + LEASE_MS
    return this.#store.update(function* (records): Tx<boolean> {
      const found = read(session, yield* records.get(SESSION + channelId))
      if (found?.id !== id || (seq !== undefined && seq <= found.seq)) return false
      yield* records.put(SESSION + channelId, { ...found, seq: seq ?? found.seq }, until)
      return true
    })
  }

  /** Ends a session, if it is still the channel's. */
  async end(channelId: string, { id }: Pick<Session, 'id'>): Promise<void> {
    await this.#store.update(function* (records): Tx<void> {
      const found = read(session, yield* records.get(SESSION + channelId))
      if (found?.id === id) yield* records.delete(SESSION + channelId)
    })
  }

  async #issue(given: Omit<z.infer<typeof invitation>, 'v'>): Promise<string> {
    const { token, digest } = makeToken()
    await this.#store.put(INVITATION + digest, { v: 1, ...given }, given.expiresAt)
    return token
  }
}

function makeToken(): { readonly token: string; readonly digest: string } {
  const token = TOKEN_PREFIX + randomBytes(32).toString('base64url')
  return { token, digest: hash('sha256', token, 'base64url') }
}

/** Tells the other hubs of a shared store. */
const NOTICE = { announces: [] }

function read<Value>(form: z.ZodMiniType<Value>, value: unknown): Value | undefined {
  return form.safeParse(value).data
}
