import { afterAll, afterEach, beforeAll, beforeEach } from 'vitest'
import type { Ran } from '../kit/run.js'

/** What is made once for the tests of a file or a `describe`, in place of which this stands until it is there. It ends after them. */
export function shared<Made extends object>(make: () => Promise<Made>): Made {
  return standIn(make, beforeAll, afterAll)
}

/** The same, made for each test. */
export function fresh<Made extends object>(make: () => Promise<Made>): Made {
  return standIn(make, beforeEach, afterEach)
}

type Hook = (act: () => Promise<void>) => unknown

function standIn<Made extends object>(make: () => Promise<Made>, before: Hook, after: Hook): Made {
  let made: Partial<AsyncDisposable> = {}
  before(async () => {
    made = await make()
  })
  after(async () => made[Symbol.asyncDispose]?.())
  return new Proxy(Object.create(null), {
    get(_, name) {
      const value: unknown = Reflect.get(made, name)
      return typeof value === 'function' ? value.bind(made) : value
    },
  })
}

/** How a command ends that succeeds, and prints nothing but a note. */
export function notes(err: string): Ran {
  return { code: 0, out: '', err }
}

/** What a command prints as one JSON document. */
export async function json(ran: Promise<Ran>) {
  return JSON.parse((await ran).out)
}
