import { RelayError } from '../../../base/errors.js'
import type { Context } from '../../context.js'
import { tilde } from '../../output/display-path.js'
import { createOutput } from '../../output/output.js'
import { table } from '../../output/table.js'
import { defaultText, OPTION_NAMES, type OptionName, specOf } from '../../settings/options.js'
import type { CommonFlags } from '../../settings/prepare.js'
import { readOptions } from '../../settings/read.js'
import { didYouMean, plain } from '../../../base/suggest.js'
import { describeSettings, type DescribedSetting, type Value } from './describe.js'

export async function runConfig(
  context: Context,
  flags: CommonFlags & { readonly reveal?: string },
): Promise<void> {
  const output = createOutput(context, flags)
  const name = flags.reveal === undefined ? undefined : findName(flags.reveal)
  const settings = describeSettings(readOptions(context, flags, output.log))
  if (name !== undefined) {
    const value = reveal(settings, name)
    if (flags.json) output.object({ name, value })
    else output.exactly(`${textOf(value)}\n`)
  } else if (flags.json) {
    output.object({ settings: Object.fromEntries(settings.map((one) => [one.name, asObject(one)])) })
  } else {
    for (const line of table([['name', 'value', 'origin'], ...settings.map(asRow)])) output.result(line)
  }
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
  throw new RelayError('usage', `--reveal: no setting is called ${word}${didYouMean(word, OPTION_NAMES)}`)
}

/** @throws RelayError `settings` when it has no value. */
function reveal(settings: readonly DescribedSetting[], name: OptionName): Value {
  const { value } = settings.find((one) => one.name === name) ?? {}
  if (value !== undefined) return value
  const text = defaultText(name)
  throw new RelayError('settings', `${name} is not set${text === undefined ? '' : ` (default: ${text})`}`)
}

function asObject({ name, value, origin }: DescribedSetting): Record<string, unknown> {
  if (specOf(name).secret) return { set: value !== undefined, origin }
  return { value: value === undefined ? null : masked(name, value), origin }
}

function asRow({ name, value, origin }: DescribedSetting): string[] {
  const text = value === undefined ? (defaultText(name) ?? '-') : textOf(masked(name, value))
  return [name, value !== undefined && specOf(name).secret ? 'set' : text, tilde(origin)]
}

/** Hides passwords, which only `--reveal` prints. */
function masked(name: OptionName, value: Value): Value {
  const { mask } = specOf(name)
  return mask && typeof value === 'object' ? value.map(mask) : value
}

function textOf(value: Value): string {
  return typeof value === 'object' ? value.join(',') : String(value)
}
