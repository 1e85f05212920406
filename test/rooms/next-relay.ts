// relay as its next version will be: a program like bin/relay.ts, with migrations that this version does not have. Where KILL_AT is set, it is
// killed when it has run so many of their statements.
import { killedAt, laterVersion } from './next-version.js'

const at = process.env['KILL_AT']
if (at === undefined) laterVersion()
else killedAt(Number(at))
await import('../../bin/process.js')
