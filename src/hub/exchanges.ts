import { z } from 'zod/mini'
import type { Header } from '../http/headers.js'
import type { Store } from '../store/kv.js'

/** A workstation's answer to a sender. */
export interface SenderAnswer {
  readonly status: number
  readonly headers: readonly Header[]
  readonly body: Uint8Array
}

const ANSWER = 'hub-answer:'
/** Time after which an answer that no hub has taken is removed: no sender waits longer. Milliseconds. */
const KEPT_MS = 30_000
const record = z.object({
  status: z.number(),
  headers: z.array(z.tuple([z.string(), z.string()])),
  /** base64 */
  body: z.string(),
})

/**
 * Senders that wait for their workstation's answer. With a shared store, the sender may wait at one hub and the
 * workstation answer at another: the answer is then a record, and the other hubs are notified.
 */
export class Exchanges {
  readonly #waiting = new Map<string, (answer: SenderAnswer) => void>()
  readonly #store: Store
  readonly #isShared: boolean
  readonly #clock: () => number

  constructor({ store, isShared, clock }: { store: Store; isShared: boolean; clock: () => number }) {
    this.#store = store
    this.#isShared = isShared
    this.#clock = clock
  }

  /** Expects the answer to a request, from before it is stored. `within` waits for it, at most `ms` milliseconds. */
  expect(id: string): { readonly within: (ms: number) => Promise<SenderAnswer | undefined> } & Disposable {
    let resolve: (answer: SenderAnswer | undefined) => void = () => {}
    const answered = new Promise<SenderAnswer | undefined>((settle) => (resolve = settle))
    this.#waiting.set(id, resolve)
    let timer: NodeJS.Timeout | undefined
    return {
      within(ms) {
        timer = setTimeout(() => resolve(undefined), ms)
        return answered
      },
      [Symbol.dispose]: () => {
        clearTimeout(timer)
        this.#waiting.delete(id)
      },
    }
  }

  /** Passes a workstation's answer to the sender that waits here, or at another hub. */
  async answer(id: string, answer: SenderAnswer): Promise<void> {
    const resolve = this.#waiting.get(id)
    if (resolve) return resolve(answer)
    if (!this.#isShared) return
    const { status, headers, body } = answer
    const value = {
      status,
      headers: headers.map(([name, text]) => [name, text]),
      body: Buffer.from(body).toString('base64'),
    }
    await this.#store.update((records) => records.put(ANSWER + id, value, this.#clock() + KEPT_MS), {
      announces: [],
    })
  }

  /** Looks for answers that other hubs have stored. To be called at each notice. Does not reject. */
  async look(): Promise<void> {
    if (!this.#isShared) return
    for (const id of this.#waiting.keys()) {
      const found = record.safeParse(await this.#store.consume(ANSWER + id).catch(() => undefined)).data
      if (found) this.#waiting.get(id)?.({ ...found, body: Buffer.from(found.body, 'base64') })
    }
  }
}
