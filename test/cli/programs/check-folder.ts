/** Prints what `relay doctor` says of a folder to a user without the rights of root. Argument: the folder. */
import { checkFolder } from '../../../src/cli/commands/doctor/machine.js'

/** The user `nobody` of most systems. */
const NOBODY = 65_534

if (process.getuid?.() === 0) process.setuid?.(NOBODY)
process.stdout.write(`${JSON.stringify(await checkFolder(process.argv[2] ?? ''))}\n`)
