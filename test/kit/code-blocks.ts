import { readFileSync } from 'node:fs'

/** The code blocks of a Markdown file that begin with a comment of a file's name, by that name. */
export function codeBlocks(markdown: string): Map<string, string> {
  const blocks = readFileSync(markdown, 'utf8').matchAll(
    /^```(?:ts|sh|haproxy|ini)\n((?:\/\/|#) (\S+\.\w+)\n[^]*?)^```$/gm,
  )
  return new Map([...blocks].map(([, text = '', name = '']) => [name, text]))
}
