#!/usr/bin/env node
import { writeFileSync } from 'node:fs'
import module from 'node:module'
import packageJson from '../package.json' with { type: 'json' }

/** Whether the version is all that is asked for, and was written: scripts do so often, and it needs nothing of the program. */
function isVersionWritten([flag = '', ...others]: readonly string[]): boolean {
  if (others.length > 0 || !['--version', '-V'].includes(flag)) return false
  try {
    // Not by `process.stdout`, which would load streams.
    writeFileSync(1, `${packageJson.version}\n`)
    return true
  } catch {
    // The program reports what is wrong with the output.
    return false
  }
}

if (!isVersionWritten(process.argv.slice(2))) {
  // Node 22.8 and later keep compiled code between starts, for the modules loaded after this call.
  Object(module).enableCompileCache?.()
  void import('./process.js')
}
