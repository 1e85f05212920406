import type { Command } from 'commander'
import type { Context } from '../../context.js'
import { createOutput } from '../../output/output.js'
import type { CommonFlags } from '../../settings/prepare.js'
import { bashCompletion } from './bash.js'
import { fishCompletion } from './fish.js'
import type { WordKind } from './word-kinds.js'
import { printWords } from './words.js'
import { zshCompletion } from './zsh.js'

const SCRIPTS = { bash: bashCompletion, zsh: zshCompletion, fish: fishCompletion } as const

/** Runs `relay completion`: makes the script from the whole command tree. */
export async function runCompletion(
  context: Context,
  flags: CommonFlags & { readonly words?: WordKind },
  shell: keyof typeof SCRIPTS,
  _: unknown,
  command: Command,
): Promise<void> {
  if (flags.words) return printWords(context, flags, flags.words)
  const script = SCRIPTS[shell](command.parent ?? command).trimEnd()
  const output = createOutput(context, flags)
  if (flags.json) output.object({ shell, script })
  else output.exactly(`${script}\n`)
}
