import { createContext, Script } from 'node:vm'
import { RelayError } from '../../base/errors.js'

/** Longer than any sensible pattern takes for the longest comment. Milliseconds. */
const LIMIT = 250

const TEST = new Script('pattern.test(subject)')

/** Milliseconds of processor time that this process has used. */
type Used = () => number

/**
 * A regular expression whose tests end within a quarter of a second of work, each: some take longer than the universe
 * has been there for thirty letters. Of what V8 offers only a script's time limit ends a test that is under way. It goes
 * by the wall clock, so on a machine with other work the test has another try, with twice the time.
 * @throws SyntaxError when it is none. The function throws RelayError `usage` for a test that was ended.
 */
export function createPattern(source: string, used: Used = processorTime): (subject: string) => boolean {
  const context = createContext({ pattern: new RegExp(source, 'u'), subject: '' })
  return (subject) => {
    context['subject'] = subject
    for (let timeout = LIMIT; ; timeout *= 2) {
      const before = used()
      try {
        return TEST.runInContext(context, { timeout }) === true
      } catch (cause) {
        if (used() - before >= LIMIT) throw tooSlow(source, cause)
      }
    }
  }
}

function processorTime(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1000
}

function tooSlow(source: string, cause: unknown): RelayError {
  return new RelayError('usage', `The pattern ${JSON.stringify(source)} takes too long: make it simpler`, {
    cause,
  })
}
