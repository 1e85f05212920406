import { RelayError, toRelayError } from '../../base/errors.js'
import { aborted } from '../../base/wait.js'
import { commandFor } from '../advice.js'
import { type Flags, type Shell, shellWith } from '../command.js'
import type { ServeItem } from '../commands/serve/items.js'
import { runServe } from '../commands/serve/serve.js'
import { leftOutText } from '../commands/serve/terminal.js'
import { forwardedBy, targetsOfSettings } from '../journal.js'
import { openProfile } from '../profile.js'
import { openSettings } from '../settings/read.js'
import { NOT_STARTED } from './wording.js'

/** Flags of `relay mcp`. */
export type McpFlags = Flags & {
  readonly serve?: boolean
  readonly allowProjectExec?: boolean
  readonly allowActions?: boolean
}

/**
 * The relay of `--serve`, which ends with the client of this process. With several windows, it runs in the first one; once
 * that is closed, the next call in another window starts one. An agent's client starts it and shows its messages to no
 * one, so the commands of a checkout would run unread.
 */
export class OwnRelay {
  readonly #shell: Shell
  readonly #flags: McpFlags
  /** The start that is under way, or the last one. Aborted once a relay runs, or with the error of the start. */
  #started = new AbortController()
  /** Aborted to start again. Undefined while a start is under way, or the relay runs here. */
  #again: AbortController | undefined
  /** True while it runs in this process. */
  #isOwn = false

  constructor(shell: Shell, given: McpFlags) {
    this.#shell = shellWith(shell, { onKey: () => undefined, continueWithoutOutput: () => {} })
    this.#flags = { ...given, projectExec: given.allowProjectExec === true }
  }

  /**
   * Starts it unless one runs, and yields what happens, until the signal of the shell aborts. A failure is only a message,
   * since the tools continue.
   */
  async *run(): AsyncGenerator<ServeItem, void> {
    const { signal } = this.#shell
    for (;;) {
      yield* this.#serve()
      if (signal.aborted) return
      this.#again = new AbortController()
      await aborted(AbortSignal.any([signal, this.#again.signal]))
      if (signal.aborted) return
    }
  }

  /**
   * Resolves once a relay runs, here or elsewhere, to true if this call has started it. Starts one if none does, also
   * after a start that failed.
   * @throws RelayError of the start
   */
  async ready(): Promise<boolean> {
    // Another relay runs by now, whatever this one's last start has come to.
    if (this.#again && (await this.#isServed())) return false
    const isStarted = this.#start()
    const failure = await this.#failure()
    if (failure) throw failure
    return isStarted
  }

  /** Resolves, after the start that is under way, to the reason why it failed. Undefined if it did not. */
  async #failure(): Promise<RelayError | undefined> {
    const { signal } = this.#started
    await aborted(AbortSignal.any([signal, this.#shell.signal]))
    return signal.reason instanceof RelayError ? signal.reason : undefined
  }

  /**
   * Returns a message about commands that a file of the folder now names and this relay leaves out. Undefined if there
   * are none.
   */
  async leftOut(): Promise<string | undefined> {
    if ((await this.#failure()) || !this.#isOwn) return undefined
    const [shell, flags] = [this.#shell, this.#flags]
    const settings = await openSettings(shell, flags)
    const loaded = await settings.read(undefined, ['profile', 'exec'])
    const about = { ...loaded, instance: { sandbox: flags.sandbox === true } }
    return loaded.leftOutExec && leftOutText(loaded.leftOutExec, (line) => commandFor(about, line))
  }

  /**
   * Returns a message about targets with which this relay would run, and which the one that runs elsewhere lacks.
   * Undefined if there are none.
   */
  async unused(): Promise<string | undefined> {
    if (this.#isOwn) return undefined
    await using profile = await openProfile(this.#shell, this.#flags, { mustExist: false })
    const { instance } = profile
    if (!instance) return undefined
    const isForwarded = forwardedBy(instance)
    const { length: count } = targetsOfSettings(profile).filter(({ id }) => !isForwarded(id))
    if (count === 0) return undefined
    const lacks = `lacks ${count === 1 ? 'a target' : `${count} targets`} that the client is set up with`
    return `The relay that runs (process ${instance.pid}) was not started by this client, and ${lacks}. Stop it: the next call starts one that has ${count === 1 ? 'it' : 'them'}`
  }

  /** Lets {@link run} start again. False if a start is under way, or the relay runs here. */
  #start(): boolean {
    if (!this.#again) return false
    this.#started = new AbortController()
    this.#again.abort()
    this.#again = undefined
    return true
  }

  async #isServed(): Promise<boolean> {
    await using profile = await openProfile(this.#shell, this.#flags, { mustExist: false })
    return profile.instance !== undefined
  }

  async *#serve(): AsyncGenerator<ServeItem, void> {
    const [shell, flags, started] = [this.#shell, this.#flags, this.#started]
    try {
      this.#isOwn = !(await this.#isServed())
      if (this.#isOwn)
        for await (const item of runServe(shell, flags)) {
          // Other commands find it from here on.
          if (item.type === 'listening') started.abort()
          yield item
        }
    } catch (thrown) {
      const { kind, message } = toRelayError(thrown)
      started.abort(new RelayError(kind, `${NOT_STARTED} ${message}`, { cause: thrown }))
      if (this.#isOwn) shell.out.log.warn(`relay has stopped: ${message}`)
    } finally {
      this.#isOwn = false
      started.abort()
    }
  }
}
