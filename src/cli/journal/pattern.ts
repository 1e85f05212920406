import { createContext, Script } from 'node:vm'
import { RelayError } from '../../base/errors.js'

/** Longer than any sensible pattern takes for the longest comment. Milliseconds. */
const LIMIT = 250

const TEST = new Script('pattern.test(subject)')

/**
 * A regular expression whose tests end within a quarter of a second, each: some take longer than the universe has been
 * there for thirty letters. Of what V8 offers only a script's time limit ends a test that is under way.
 * @throws SyntaxError when it is none. The function throws RelayError `usage` for a test that was ended.
 */
export function createPattern(source: string): (subject: string) => boolean {
  const context = createContext({ pattern: new RegExp(source, 'u'), subject: '' })
  return (subject) => {
    context['subject'] = subject
    try {
      return TEST.runInContext(context, { timeout: LIMIT }) === true
    } catch (cause) {
      throw new RelayError('usage', `The pattern ${JSON.stringify(source)} takes too long: make it simpler`, {
        cause,
      })
    }
  }
}
