#!/usr/bin/env node
import module from 'node:module'
import packageJson from '../package.json' with { type: 'json' }

const [, , first = '', ...others] = process.argv

// Scripts ask for the version often, and need nothing of the program for it.
if (others.length === 0 && (first === '--version' || first === '-V')) {
  process.stdout.write(`${packageJson.version}\n`)
} else {
  // Node 22.8 and later keep compiled code between starts, for the modules loaded after this call.
  if ('enableCompileCache' in module && typeof module.enableCompileCache === 'function')
    module.enableCompileCache()
  await import('./process.js')
}
