import type { Clock } from '../../base/time.js'
import { timestamp } from '../state.js'
import { type Hook, subscribes } from './hook.js'

/** First id of a hook made over REST; the sandbox's own hook has a smaller one. */
const FIRST_ID = 601
/** Maximum number of hooks of a repository for the same event (https://docs.github.com/webhooks/about-webhooks). */
const HOOKS_PER_EVENT = 20

/** What a client chooses about a hook. */
export type HookInput = Pick<Hook, 'active' | 'events' | 'config'>

/** Hooks of all repositories, in the order in which they were made. */
export class Hooks {
  readonly #clock: Clock
  readonly #hooks = new Map<number, Hook>()
  #nextId = FIRST_ID

  constructor(clock: Clock) {
    this.#clock = clock
  }

  get(id: number): Hook | undefined {
    return this.#hooks.get(id)
  }

  of(repo: string): readonly Hook[] {
    return [...this.#hooks.values()].filter((hook) => hook.repo === repo)
  }

  subscribers(event: string, repo: string): readonly Hook[] {
    return [...this.#hooks.values()].filter((hook) => subscribes(hook, event, repo))
  }

  /** Adds a hook, with a new id unless it has one. */
  add(hook: HookInput & Pick<Hook, 'repo' | 'app'> & Partial<Pick<Hook, 'id'>>): Hook {
    const now = timestamp(this.#clock())
    const made = { id: hook.id ?? this.#nextId++, ...hook, createdAt: now, updatedAt: now }
    this.#hooks.set(made.id, made)
    return made
  }

  change(hook: Hook, input: HookInput): Hook {
    const changed = { ...hook, ...input, updatedAt: timestamp(this.#clock()) }
    this.#hooks.set(hook.id, changed)
    return changed
  }

  /** Makes the webhook of an App that was installed get events. */
  install(hook: Hook, installationId: number, active: boolean): void {
    this.#hooks.set(hook.id, { ...hook, active, app: hook.app && { ...hook.app, installationId } })
  }

  remove(hook: Hook): void {
    this.#hooks.delete(hook.id)
  }

  /**
   * GitHub's reasons to refuse a hook with these settings: the same address and format for the same event, or too many hooks
   * for an event. `itself` is the hook that is being changed.
   */
  conflicts(repo: string, { events, config }: HookInput, itself?: Hook): readonly string[] {
    const others = this.of(repo).filter(({ id }) => id !== itself?.id)
    if (others.some((hook) => overlap(hook.events, events) && sameReceiver(hook.config, config)))
      return ['Hook already exists on this repository']
    return events
      .filter((event) => others.filter((hook) => hook.events.includes(event)).length >= HOOKS_PER_EVENT)
      .map((event) => `The "${event}" event cannot have more than ${HOOKS_PER_EVENT} hooks`)
  }
}

function overlap(some: readonly string[], others: readonly string[]): boolean {
  return some.some((event) => event === '*' || others.includes(event) || others.includes('*'))
}

/** Whether both settings are one to GitHub. The secret, which it does not show, is no part of them here (unverified). */
function sameReceiver(one: Hook['config'], other: Hook['config']): boolean {
  return (
    one.url() === other.url() &&
    one.contentType === other.contentType &&
    one.insecureSsl === other.insecureSsl
  )
}
