import path from 'node:path'
import { listProfiles, readSavedProfile } from '../../instance/profile.js'
import { explainUnreachable, findInstances, unreachableError } from '../../instance/running.js'
import { define, type Flags, type Shell } from '../command.js'
import type { Output } from '../output/output.js'
import { tilde } from '../output/text.js'
import { startCommand } from '../advice.js'
import { describeSize, profileSize } from '../profile-size.js'
import { openSettings } from '../settings/read.js'

export const profilesCommand = define({
  description: `Lists the profiles in the data folder: what each is for, where its tokens are, its size, and whether its relay serve runs.
Changes nothing.`,
  examples: `relay profiles
relay profiles --json | jq -r 'select(.running) | .name'`,
  env: ['home'],
  run: runProfiles,
  print,
  json: ({ profiles }) => profiles.map(({ object }) => object),
})

async function runProfiles(shell: Shell, flags: Flags) {
  const settings = await openSettings(shell, flags)
  const { home } = settings
  const { running, unreachable } = await findInstances(home, { signal: shell.signal })
  const served = [...running, ...unreachable.map(({ record }) => record)]
  const names = [...new Set([...listProfiles(home), ...served.map(({ profile }) => profile)])].toSorted()
  const profiles = names.map((name) => {
    const folder = path.join(home, name)
    const instance = running.find(({ profile }) => profile === name)
    const known = instance ?? readSavedProfile(folder)
    const { provider = null, providerUrl = null, sandbox = false, store = null } = known ?? {}
    const other = unreachable.find(({ record }) => record.profile === name)
    if (other) shell.out.log.warn(`${name}: ${unreachableError(other).message}`)
    const { pid, url } = instance ?? other?.record ?? {}
    const at = pid === undefined ? null : { pid, url }
    const process = instance ? `runs at ${url}, process ${pid}` : other && explainUnreachable(other).text
    const size = profileSize(folder)
    const object = { type: 'profile', name, provider, providerUrl, sandbox, store, size, running: at }
    return { object, process }
  })
  if (profiles.length > 0) return { profiles, none: '' }
  const own = await settings.read()
  const start = startCommand(own)
  return { profiles, none: `There are no profiles in ${tilde(home)}. ${start} creates one` }
}
type Profiles = Awaited<ReturnType<typeof runProfiles>>

function print({ profiles, none }: Profiles, out: Output): void {
  if (profiles.length === 0) return out.say(none)
  const rows = profiles.map(({ object: { name, providerUrl, sandbox, store, size }, process }) => [
    name,
    sandbox ? 'sandbox' : (providerUrl ?? '-'),
    store ?? '-',
    describeSize(size),
    process ?? 'not running',
  ])
  out.table([['profile', 'for', 'store', 'size', 'relay serve'], ...rows])
}
