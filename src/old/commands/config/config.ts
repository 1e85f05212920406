import { RelayError, toRelayError } from '../../../base/errors.js'
import type { Context } from '../../context.js'
import { tilde } from '../../output/display-path.js'
import type { Output } from '../../output/output.js'
import { table } from '../../output/table.js'
import { type Attached, attach } from '../../session/attach.js'
import { didYouMeanSetting } from '../../settings/meant.js'
import { defaultText, OPTION_NAMES, type OptionName, specOf } from '../../settings/options.js'
import type { CommonFlags } from '../../settings/prepare.js'
import { readSetup, withStoredClient, withStoredHost } from '../../settings/stored.js'
import { plain } from '../../../base/suggest.js'
import { describeSettings, type DescribedSetting, type Value } from './describe.js'

export async function runConfig(
  context: Context,
  flags: CommonFlags & { readonly reveal?: string },
): Promise<void> {
  const name = flags.reveal === undefined ? undefined : findName(flags.reveal)
  const attached = await withSetup(await attach(context, flags, { tolerant: true, mayWait: true }))
  const { output } = attached
  const settings = describeSettings(attached)
  const one = settings.find((setting) => setting.name === name)
  if (one) reveal(one, output, flags)
  else if (flags.json)
    output.object({ settings: Object.fromEntries(settings.map((each) => [each.name, asObject(each)])) })
  else for (const line of table([['name', 'value', 'origin'], ...settings.map(asRow)])) output.result(line)
}

/** With what `relay setup` stored, also in what this shell has. */
async function withSetup(attached: Attached): Promise<Attached> {
  const { own, origins, options, output } = attached
  const stored = await readSetup(options, { create: false }).catch((error: unknown) => {
    output.log.warn(`what relay setup stored could not be read: ${toRelayError(error).message}`)
    return undefined
  })
  const hosted = withStoredHost({ options: own, origins }, stored)
  const { options: full, origins: places } = withStoredClient(hosted, stored)
  return { ...attached, own: full, origins: places }
}

/**
 * The setting with that name, flag or variable.
 * @throws RelayError `usage` that suggests the closest name.
 */
function findName(word: string): OptionName {
  const found = OPTION_NAMES.find((name) =>
    [name, specOf(name).env].some((known) => plain(known) === plain(word)),
  )
  if (found !== undefined) return found
  throw new RelayError(
    'usage',
    `--reveal: no setting is called ${word}${didYouMeanSetting(word, OPTION_NAMES)}`,
  )
}

/** @throws RelayError `settings` when it has no value. */
function reveal({ name, value, note }: DescribedSetting, output: Output, { json }: CommonFlags): void {
  if (value === undefined) {
    const text = note ?? (defaultText(name) && `default: ${defaultText(name)}`)
    throw new RelayError('settings', `${name} is not set${text === undefined ? '' : ` (${text})`}`)
  }
  if (note !== undefined) output.log.warn(`${name}: ${note}`)
  if (json) output.object({ name, value })
  else output.exactly(`${textOf(value)}\n`)
}

function asObject({ name, value, ...where }: DescribedSetting): Record<string, unknown> {
  if (specOf(name).secret) return { set: value !== undefined, ...where }
  return { value: value === undefined ? null : masked(name, value), ...where }
}

function asRow({ name, value, origin, note }: DescribedSetting): string[] {
  const text =
    value === undefined ? (note === undefined && defaultText(name)) || '-' : textOf(masked(name, value))
  const place = [tilde(origin), ...(note === undefined ? [] : [note])].join('; ')
  return [name, value !== undefined && specOf(name).secret ? 'set' : text, place]
}

/** Hides passwords, which only `--reveal` prints. */
function masked(name: OptionName, value: Value): Value {
  const { mask } = specOf(name)
  return mask && typeof value === 'object' ? value.map(mask) : value
}

function textOf(value: Value): string {
  return typeof value === 'object' ? value.join(',') : String(value)
}
