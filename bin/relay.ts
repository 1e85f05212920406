#!/usr/bin/env node
import { writeSync } from 'node:fs'
import { packageVersion } from '../src/cli/version.js'
import { start } from './start.js'

const [first, ...more] = process.argv.slice(2)

// Scripts ask for the version alone often, and it needs no command, no stream and no signal.
if (more.length === 0 && (first === '--version' || first === '-V')) tellVersion()
else start()

function tellVersion(): void {
  try {
    writeSync(1, `${packageVersion()}\n`)
  } catch {
    // Nobody reads it.
  }
}
