import { mkdir, mkdtemp, rm, stat, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { errorReason } from '../../../base/errno.js'
import { RelayError } from '../../../base/errors.js'
import { fixtureText, toFixture } from '../../../fixtures/fixture.js'
import { checkFixture } from '../../../fixtures/parse.js'
import type { Entry } from '../../../journal/delivery.js'
import { salvage } from '../../../journal/salvage.js'
import { openCopy } from '../../../store/open-copy.js'
import type { Context } from '../../context.js'
import { createOutput } from '../../output/output.js'
import type { CommonFlags } from '../../settings/prepare.js'

export type SalvageFlags = CommonFlags & { readonly salvage: string; readonly out?: string }

/**
 * Runs `relay doctor --salvage`: writes every delivery that can be read from a damaged database as a fixture into a new folder.
 * The database is copied there while it is read, and is not changed.
 * @throws RelayError `unhealthy` when some deliveries cannot be read; `usage` for a missing file, or a folder that exists.
 */
export async function runSalvage(context: Context, flags: SalvageFlags): Promise<void> {
  const output = createOutput(context, flags)
  const file = path.resolve(context.cwd, flags.salvage)
  const folder = path.resolve(context.cwd, flags.out ?? `${file}.salvaged`)
  if (!(await isFile(file))) throw new RelayError('usage', `--salvage: there is no file ${flags.salvage}`)
  await makeFolder(folder)
  const { read, damaged, lost } = await salvageInto(file, folder, context.signal)
  const total = read + damaged + lost
  if (flags.json) output.object({ file, folder, read, damaged, total })
  else {
    output.say(`${read} of ${total} deliveries are in ${folder}. Send them with relay replay ${folder}`)
    if (damaged > 0)
      output.say(
        `${damaged} more are no valid fixtures: correct what is damaged in *${DAMAGED}, and rename them to *.json`,
      )
  }
  if (read < total)
    throw new RelayError(
      'unhealthy',
      `${total - read} of ${total} deliveries could not be read whole from ${file}`,
    )
}

/** Ending of a file that `relay replay` refuses, and leaves out when it replays the folder. */
const DAMAGED = '.damaged'

interface SalvageCounts {
  /** Written as fixtures. */
  readonly read: number
  /** Written, but no valid fixtures: for example, their event has a control character. */
  readonly damaged: number
  readonly lost: number
}

async function salvageInto(file: string, folder: string, signal: AbortSignal): Promise<SalvageCounts> {
  const copies = await mkdtemp(path.join(folder, '.copy-'))
  let [read, damaged, lost] = [0, 0, 0]
  try {
    await using sql = openCopy(file, copies)
    for await (const { n, entry } of salvage(sql)) {
      signal.throwIfAborted()
      if (!entry) {
        lost++
        continue
      }
      const { text, isValid } = toFile(entry)
      const name = `${String(n).padStart(8, '0')}${isValid ? '.json' : DAMAGED}`
      await writeFile(path.join(folder, name), text, { mode: 0o600 })
      if (isValid) read++
      else damaged++
    }
  } finally {
    await rm(copies, { recursive: true, force: true })
  }
  return { read, damaged, lost }
}

function toFile(entry: Entry): { readonly text: string; readonly isValid: boolean } {
  const text = fixtureText(toFixture(entry))
  try {
    checkFixture(JSON.parse(text), text, '')
    return { text, isValid: true }
  } catch {
    return { text, isValid: false }
  }
}

async function isFile(file: string): Promise<boolean> {
  try {
    return (await stat(file)).isFile()
  } catch {
    return false
  }
}

/** @throws RelayError `usage` */
async function makeFolder(folder: string): Promise<void> {
  try {
    await mkdir(folder, { mode: 0o700 })
  } catch (cause) {
    const code = errorReason(cause)
    const why = code === 'EEXIST' ? 'exists' : `cannot be made (${code})`
    throw new RelayError('usage', `The folder ${folder} ${why}. Name a new one with --out`, { cause })
  }
}
