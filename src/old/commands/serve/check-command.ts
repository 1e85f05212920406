import { accessSync, constants, readdirSync, statSync } from 'node:fs'
import path from 'node:path'
import { didYouMean } from '../../../base/suggest.js'

/** A command line's first word, where it is the name of a program and nothing that only a shell can read. */
const FIRST_WORD = /^\s*([\w.+@/-]+)(?=\s|$|[;&|<>])/

/** What `/bin/sh` runs by itself (POSIX.1-2024, Shell Command Language 2.4 and 2.15, and its built-in utilities). */
const OF_SHELL: ReadonlySet<string> = new Set(
  `. : alias bg break case cd command continue do done echo elif else esac eval exec exit export false fc fg fi for getopts
  hash if jobs kill local printf pwd read readonly return set shift test then times trap true type ulimit umask unalias unset
  until wait while`.split(/\s+/),
)

interface Place {
  /** Where commands run. */
  readonly cwd: string
  readonly env: Readonly<Record<string, string | undefined>>
}

/** Why `/bin/sh -c` will not find the program that this command line begins with; undefined if it will, or may. */
export function whyNotFound(command: string, { cwd, env }: Place): string | undefined {
  const [, word = ''] = FIRST_WORD.exec(command) ?? []
  if (word === '' || OF_SHELL.has(word)) return undefined
  if (word.includes('/')) return whyNotRunnable(word, path.resolve(cwd, word))
  const folders = (env['PATH'] ?? '').split(path.delimiter).filter(Boolean)
  if (folders.some((folder) => isRunnable(path.resolve(cwd, folder, word)))) return undefined
  if (isFile(path.join(cwd, word))) return `there is no command ${word} (did you mean ./${word}?)`
  return `there is no command ${word}${didYouMean(word, folders.flatMap(namesIn))}`
}

function whyNotRunnable(word: string, file: string): string | undefined {
  if (isRunnable(file)) return undefined
  if (isFile(file)) return `${word} is not executable: chmod +x ${word}`
  const hint = didYouMean(path.basename(word), namesIn(path.dirname(file)))
  return `there is no ${word}${hint.replace('mean ', `mean ${word.slice(0, word.lastIndexOf('/') + 1)}`)}`
}

function isRunnable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK)
    return isFile(file)
  } catch {
    return false
  }
}

function isFile(file: string): boolean {
  return statSync(file, { throwIfNoEntry: false })?.isFile() ?? false
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch {
    return []
  }
}
