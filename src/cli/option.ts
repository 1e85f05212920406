import { Option } from 'commander'
import type { FlagSpec } from './command.js'
import { helpOf } from './help.js'

/** Makes commander's option, whose help is such as `port to listen on (env: RELAY_PORT) (default: 8787)`. */
export function toOption(spec: FlagSpec): Option {
  const [flags, , more = {}] = spec
  const { choices, repeatable, setting, bare, default: value } = more
  const option = new Option(flags, helpOf(spec)).preset(bare)
  if (value !== undefined) option.default(value)
  if (choices) option.choices(choices)
  // A repeated flag such as `--source` and its setting have different names.
  if (setting !== undefined) option.attributeName = () => setting
  if (repeatable) option.argParser<readonly string[] | undefined>((text, before) => [...(before ?? []), text])
  return option
}
