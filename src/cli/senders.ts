import { RelayError } from '../base/errors.js'
import { Secret } from '../base/secret.js'
import { isCodeHost } from '../base/settings.js'
import { schemeOf } from '../codehost/schemes.js'
import { isOfCodeHost, type Recorded } from '../replay/fixture.js'
import type { Database } from '../store/open.js'
import { pathOf, type Source } from '../webhook/signature.js'
import type { Shell } from './command.js'
import { type Attached, requireSecret, webhookSecret } from './profile.js'
import { secretVariable } from './settings/table.js'
import { lacksSecret, readSources, sourceNamed } from './sources.js'

/** The source of a recorded delivery, with the secret that signs for it. */
export interface RecordedSource extends Source {
  /** Where the secret is, for a person: a variable, `profile`. Undefined if the source is not the code host. */
  readonly place?: string
  /** The path at which relay takes its deliveries. */
  readonly path: string
}

/**
 * Finds the source of any recorded delivery: the code host, or one of the sources that are set. What they need is read once.
 * @returns a function that throws RelayError `settings` without a secret for the `purpose`; `usage` for a source that is not set
 */
export function openSources(
  shell: Shell,
  attached: Pick<Attached, 'values' | 'origins' | 'folder' | 'instance'>,
  { secretEnv, data, purpose }: SecretOptions,
): (recorded: Pick<Recorded, 'provider' | 'scheme'>) => Promise<RecordedSource> {
  const { webhookSecretPrevious: previous } = attached.values
  let found: ReturnType<typeof webhookSecret> | undefined
  let sources: ReturnType<typeof readSources> | undefined
  return async ({ provider: name, scheme }) => {
    const set = isCodeHost(name) ? [] : await (sources ??= readSources(shell, attached, data))
    const known = set.find((source) => source.name === name)
    // A file may name another scheme than the source has. One with a token would send the secret itself.
    const schemeText = isCodeHost(name) ? name : (known?.scheme ?? scheme ?? name)
    const about = { name, schemeText, scheme: schemeOf(schemeText) }
    const isHost = known === undefined && isOfCodeHost({ provider: name, scheme: schemeText })
    const path = isHost ? '/webhook' : pathOf(name)
    if (!isHost && secretEnv === undefined) {
      const { secrets } = known ?? sourceNamed(set, name)
      if (!lacksSecret({ name, scheme: schemeText, secrets })) return { ...about, path, secrets }
      throw new RelayError(
        'settings',
        `There is no secret of ${name} to ${purpose}: set ${secretVariable(name)}, or store it with relay source add ${name}`,
      )
    }
    found ??= webhookSecret(shell, attached, { secretEnv, data })
    const { secret: current, place } = requireSecret(await found, purpose)
    const hasPrevious = secretEnv === undefined && previous !== undefined
    const secrets = { current, previous: hasPrevious ? new Secret(previous) : undefined }
    return { ...about, path, secrets, ...(isHost && { place }) }
  }
}

interface SecretOptions {
  readonly secretEnv: string | undefined
  readonly data: Database | undefined
  /** Completes "no webhook secret to …". */
  readonly purpose: string
}
