import path from 'node:path'
import { findRunning, type RunningInstance } from '../../../instance/running.js'
import { listProfiles, readSavedProfile } from '../../../instance/profile.js'
import type { Context } from '../../context.js'
import { tilde } from '../../output/display-path.js'
import { createOutput } from '../../output/output.js'
import { table } from '../../output/table.js'
import { startCommand } from '../../session/start-command.js'
import type { CommonFlags } from '../../settings/prepare.js'
import { openSources } from '../../settings/read.js'
import { describeSize, profileSize } from './size.js'

/** A profile as it is listed. */
interface Listed {
  readonly name: string
  /** Its code host; null if it is not known. */
  readonly provider: string | null
  readonly providerUrl: string | null
  readonly sandbox: boolean
  readonly store: string | null
  /** Bytes of its files. */
  readonly size: number
  readonly running: { readonly pid: number; readonly url: string } | null
}

/** Runs `relay profiles`. */
export async function runProfiles(context: Context, flags: CommonFlags): Promise<void> {
  const output = createOutput(context, flags)
  const { home } = openSources(context, flags, output.log)
  const running = await findRunning(home, { signal: context.signal })
  const names = [...new Set([...listProfiles(home), ...running.map(({ profile }) => profile)])].toSorted()
  const listed = names.map((name) => describe(home, name, running))
  if (flags.json) {
    for (const profile of listed) output.object({ type: 'profile', ...profile })
    return
  }
  if (listed.length === 0)
    return output.say(
      `There are no profiles in ${tilde(home)}. ${startCommand({ profile: 'default' })} creates one`,
    )
  for (const line of table([HEADER, ...listed.map(row)])) output.result(line)
}

function describe(home: string, name: string, running: readonly RunningInstance[]): Listed {
  const folder = path.join(home, name)
  const instance = running.find(({ profile }) => profile === name)
  const {
    provider = null,
    providerUrl = null,
    sandbox = false,
    store = null,
  } = instance ?? readSavedProfile(folder) ?? {}
  return {
    name,
    provider,
    providerUrl,
    sandbox,
    store,
    size: profileSize(folder),
    running: instance ? { pid: instance.pid, url: instance.url } : null,
  }
}

const HEADER = ['profile', 'for', 'store', 'size', 'relay serve']

function row({ name, providerUrl, sandbox, store, size, running }: Listed): string[] {
  const purpose = sandbox ? 'sandbox' : (providerUrl ?? '-')
  const state = running ? `runs at ${running.url}, process ${running.pid}` : 'not running'
  return [name, purpose, store ?? '-', describeSize(size), state]
}
