import { readFileSync } from 'node:fs'

/**
 * The code blocks of a Markdown file that begin with a comment of a file's name, by that name.
 * @param languages as a pattern
 */
export function codeBlocks(markdown: string, languages = 'ts|sh|haproxy|ini'): Map<string, string> {
  const blocks = readFileSync(markdown, 'utf8').matchAll(
    new RegExp(`^\`\`\`(?:${languages})\\n((?://|#) (\\S+\\.\\w+)\\n[^]*?)^\`\`\`$`, 'gm'),
  )
  return new Map([...blocks].map(([, text = '', name = '']) => [name, text]))
}
