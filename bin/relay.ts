#!/usr/bin/env node
// Every Node, however old, must be able to parse this file and its imports: no syntax that Node 12 lacks, and no
// `node:` import.
import packageJson from '../package.json' with { type: 'json' }

/** Compares two versions: `18.20.8` is before `20.18.1`. */
function isBefore(version: string, other: string): boolean {
  const [own, needed] = [version, other].map((text) => text.split('.').map(Number))
  const first = (own || []).findIndex((part, i) => part !== (needed || [])[i])
  return first !== -1 && Number((own || [])[first]) < Number((needed || [])[first])
}

const needed = packageJson.engines.node.replace('>=', '')
const current = process.versions.node
if (isBefore(current, needed)) {
  process.stderr.write(`error: relay needs Node ${needed} or newer; this is ${current}\n`)
  process.exitCode = 1
} else void import('./start.js')
