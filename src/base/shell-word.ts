/**
 * Text as one word of a POSIX shell, and of zsh: in single quotes, only the quote itself is special (POSIX, Shell Command Language
 * 2.2.2).
 */
export function shellWord(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`
}
