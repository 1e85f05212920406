import type { Expectation, Expiry, Json, Operation, Store } from '../../src/store/contract.js'

interface Record {
  readonly value: Json
  readonly expiresAt: number
}

/** The simplest store there is: what the real ones must agree with, whatever is done in whatever order. */
export class Model implements Omit<Store, typeof Symbol.asyncDispose> {
  now = 0
  readonly #records = new Map<string, Record>()

  async get(key: string): Promise<Json | undefined> {
    return this.#live(key)
  }

  async put(key: string, value: Json, { expiresAt = Infinity }: Expiry = {}): Promise<void> {
    this.#records.set(key, { value, expiresAt })
  }

  async putIfAbsent(key: string, value: Json, expiry?: Expiry): Promise<boolean> {
    if (this.#live(key) !== undefined) return false
    await this.put(key, value, expiry)
    return true
  }

  async take(key: string): Promise<Json | undefined> {
    const value = this.#live(key)
    if (value !== undefined) this.#records.delete(key)
    return value
  }

  async delete(key: string): Promise<boolean> {
    return (await this.take(key)) !== undefined
  }

  async list(prefix: string): Promise<string[]> {
    const keys = [...this.#records.keys()].filter((key) => key.startsWith(prefix))
    return keys
      .filter((key) => this.#live(key) !== undefined)
      .toSorted((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)))
  }

  async write(operations: readonly Operation[], expected: readonly Expectation[] = []): Promise<boolean> {
    if (!expected.every(({ key, value }) => JSON.stringify(this.#live(key)) === JSON.stringify(value)))
      return false
    for (const operation of operations) {
      if (operation.type === 'delete') this.#records.delete(operation.key)
      else await this.put(operation.key, operation.value, operation)
    }
    return true
  }

  async sweep(): Promise<number> {
    const expired = [...this.#records.keys()].filter((key) => this.#live(key) === undefined)
    for (const key of expired) this.#records.delete(key)
    return expired.length
  }

  #live(key: string): Json | undefined {
    const record = this.#records.get(key)
    return record && this.now < record.expiresAt ? record.value : undefined
  }
}
