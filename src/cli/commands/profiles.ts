import path from 'node:path'
import { isServed, listProfiles, readSavedProfile } from '../../instance/profile.js'
import { explainUnreachable, findInstances, unreachableError } from '../../instance/running.js'
import { define, type Flags, type Shell } from '../command.js'
import type { Output } from '../output/output.js'
import { tilde } from '../output/text.js'
import { startCommand } from '../advice.js'
import { describeSize, profileSize } from '../profile-size.js'
import { openSettings } from '../settings/read.js'

export const profilesCommand = define({
  description: `Lists the profiles in the data folder: purpose, place of the tokens, size, and whether a relay serve runs.
Changes nothing.`,
  examples: `relay profiles
relay profiles --json | jq -r 'select(.running) | .name'`,
  env: ['home'],
  run: runProfiles,
  print,
  json: ({ profiles }) => profiles.map(({ object }) => object),
})

interface Listed {
  readonly object: {
    readonly type: 'profile'
    readonly name: string
    readonly provider: string | null
    readonly providerUrl: string | null
    readonly sandbox: boolean
    readonly hub: boolean
    readonly store: string | null
    readonly size: ReturnType<typeof profileSize>
    readonly running: object | null
  }
  /** Its process, in words. Undefined if none runs. */
  readonly process: string | undefined
}

async function runProfiles(shell: Shell, flags: Flags) {
  const settings = await openSettings(shell, flags)
  const { home } = settings
  const { running, unreachable } = await findInstances(home, { signal: shell.signal })
  const served = [...running, ...unreachable.map(({ record }) => record)]
  const names = [...new Set([...listProfiles(home), ...served.map(({ profile }) => profile)])].toSorted()
  const profiles: Listed[] = []
  for (const name of names) {
    const folder = path.join(home, name)
    const instance = running.find(({ profile }) => profile === name)
    const saved = readSavedProfile(folder)
    const known = instance ?? saved
    const isHub = saved?.hub === true
    const isHubServed = isHub && (await isServed(folder))
    const { provider = null, providerUrl = null, sandbox = false, store = null } = known ?? {}
    const other = unreachable.find(({ record }) => record.profile === name)
    if (other) shell.out.log.warn(`${name}: ${unreachableError(other).message}`)
    const { pid, url } = instance ?? other?.record ?? {}
    // A hub does not say where it is.
    const at = pid === undefined ? (isHubServed ? { pid: null, url: null } : null) : { pid, url }
    const process = instance
      ? `runs at ${url}, process ${pid}`
      : isHubServed
        ? 'the hub runs'
        : other && explainUnreachable(other).text
    const size = profileSize(folder)
    const about = { type: 'profile', name, provider, providerUrl, sandbox, hub: isHub, store } as const
    profiles.push({ object: { ...about, size, running: at }, process })
  }
  if (profiles.length > 0) return { profiles, none: '' }
  const own = await settings.read()
  const start = startCommand(own)
  return { profiles, none: `There are no profiles in ${tilde(home)}. ${start} creates one` }
}

function print({ profiles, none }: Awaited<ReturnType<typeof runProfiles>>, out: Output): void {
  if (profiles.length === 0) return out.say(none)
  const rows = profiles.map(({ object: { name, providerUrl, sandbox, hub, store, size }, process }) => [
    name,
    hub ? 'hub' : sandbox ? 'sandbox' : (providerUrl ?? '-'),
    store ?? '-',
    describeSize(size),
    process ?? 'not running',
  ])
  out.table([['profile', 'for', 'store', 'size', 'relay serve'], ...rows])
}
