import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readlinkSync } from 'node:fs'
import { type Start, withoutInherited } from '../../../src/base/without-inherited.js'

// Starts a program, which shall wait for its input as cat does, and prints what its descriptors are, as JSON.
// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the test wrote it
const { start, bash } = JSON.parse(process.argv[2] ?? '') as { start: Start; bash?: string }

const run = ({ command, args, stdio }: Start) => spawn(command, args, { stdio: [...stdio] })
const child = withoutInherited(start, run, bash)
const exit = once(child, 'exit')
// What cat answers, it has opened no more files for.
child.stdin?.write('x')
if (child.stdout) await once(child.stdout, 'data')
const folder = `/proc/${child.pid}/fd`
const all = readdirSync(folder).map((name) => [name, readlinkSync(`${folder}/${name}`)])
child.stdin?.end()
process.exitCode = Number((await exit)[0])
process.stdout.write(JSON.stringify(Object.fromEntries(all)))
