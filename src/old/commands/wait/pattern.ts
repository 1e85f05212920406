import { createContext, Script } from 'node:vm'
import { RelayError } from '../../../base/errors.js'

/** Longer than any sensible pattern takes for the longest comment. */
const LIMIT_MS = 250

const TEST = new Script('pattern.test(subject)')

/** The processor time that this process has used, in milliseconds. */
type Used = () => number

/**
 * A regular expression whose tests end within a quarter of a second of processor time each. Some patterns take practically
 * forever for thirty letters, and of V8's means only a script's time limit ends a test. That limit counts wall-clock time, so
 * on a busy machine the test runs again with twice the limit.
 * @throws SyntaxError for an invalid pattern. The function throws RelayError `usage` for a test that was ended.
 */
export function createPattern(source: string, used: Used = processorTime): (subject: string) => boolean {
  const context = createContext({ pattern: new RegExp(source, 'u'), subject: '' })
  return (subject) => {
    context['subject'] = subject
    for (let timeout = LIMIT_MS; ; timeout *= 2) {
      const before = used()
      try {
        return TEST.runInContext(context, { timeout }) === true
      } catch (cause) {
        if (used() - before >= LIMIT_MS) throw tooSlow(source, cause)
      }
    }
  }
}

function processorTime(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1000
}

function tooSlow(source: string, cause: unknown): RelayError {
  return new RelayError('usage', `The pattern ${JSON.stringify(source)} takes too long. Simplify it`, {
    cause,
  })
}
