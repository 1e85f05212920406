import type { Connection, FieldDef, Submittable } from 'pg'
import type { SqlRow, SqlValue } from '../sql.js'
import type { Prepared } from './statements.js'
import { readerOf, toParameter } from './values.js'

/** A statement of a batch. */
export interface BatchStep {
  readonly prepared: Prepared
  readonly values: readonly SqlValue[]
}

interface Column {
  readonly name: string
  readonly read: (text: string) => SqlValue
}

/** The columns of the statements that a connection has prepared, by name; none for one that returns no rows. */
const prepared = new WeakMap<Connection, Map<string, readonly Column[]>>()

/**
 * Statements that are sent in one round trip and done in one transaction: between two `Sync` messages the server commits all or
 * nothing (PostgreSQL 15, 55.2.4, "Pipelining"). The driver calls the methods; `done` gives the rows of each statement.
 */
export class Batch implements Submittable {
  readonly done: Promise<readonly (readonly SqlRow[])[]>
  readonly #steps: readonly BatchStep[]
  readonly #results: SqlRow[][] = [[]]
  #known = new Map<string, readonly Column[]>()
  #unnamed: readonly Column[] = []
  #resolve: (results: readonly (readonly SqlRow[])[]) => void = () => {}
  #reject: (error: unknown) => void = () => {}

  constructor(steps: readonly BatchStep[]) {
    this.#steps = steps
    this.done = new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
    })
  }

  /** The index of the statement that is being done, or that failed. */
  get position(): number {
    return this.#results.length - 1
  }

  submit(connection: Connection): void {
    this.#known = prepared.get(connection) ?? new Map()
    prepared.set(connection, this.#known)
    // One write for all: the driver's own turns off the delay that would gather them.
    connection.stream.cork()
    const sent = new Set(this.#known.keys())
    for (const { prepared, values } of this.#steps) {
      if (!sent.has(prepared.name)) this.#prepare(connection, prepared)
      if (prepared.name !== '') sent.add(prepared.name)
      connection.bind({ statement: prepared.name, values: values.map(toParameter) }, true)
      connection.execute({}, true)
    }
    connection.sync()
    connection.stream.uncork()
  }

  /** Closed first, as it may have been prepared in a batch that failed. Closing what there is not is no error. */
  #prepare(connection: Connection, { name, text }: Prepared): void {
    if (name !== '') connection.close({ type: 'S', name }, true)
    connection.parse({ name, text, types: [] }, true)
    connection.describe({ type: 'S', name }, true)
  }

  handleRowDescription({ fields }: { readonly fields: readonly FieldDef[] }): void {
    const columns = fields.map(({ name, dataTypeID }) => ({ name, read: readerOf(dataTypeID) }))
    const name = this.#steps[this.position]?.prepared.name ?? ''
    if (name === '') this.#unnamed = columns
    else this.#known.set(name, columns)
  }

  handleDataRow({ fields }: { readonly fields: readonly (string | null)[] }): void {
    const { name = '' } = this.#steps[this.position]?.prepared ?? {}
    const columns = this.#known.get(name) ?? this.#unnamed
    const row = columns.map(({ name, read }, i) => [name, readField(read, fields[i])] as const)
    this.#results.at(-1)?.push(Object.fromEntries(row))
  }

  handleCommandComplete(): void {
    const { name = '' } = this.#steps[this.position]?.prepared ?? {}
    if (name !== '' && !this.#known.has(name)) this.#known.set(name, [])
    this.#results.push([])
  }

  handleError(error: unknown): void {
    this.#reject(error)
  }

  handleReadyForQuery(): void {
    this.#resolve(this.#results.slice(0, this.#steps.length))
  }

  /** No statement of relay's suspends a portal, is empty, or copies. */
  handlePortalSuspended(): void {}
  handleEmptyQuery(): void {}
  handleCopyInResponse(): void {}
  handleCopyData(): void {}
}

function readField(read: Column['read'], text: string | null | undefined): SqlValue {
  return text === null || text === undefined ? null : read(text)
}
