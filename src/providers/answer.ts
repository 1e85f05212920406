/**
 * Parses `text` as JSON; undefined if it is not JSON. Of several documents, one per line, the last one counts: Gitea 1.15 answers
 * a merge conflict with two, of which the second is the error.
 */
export function parseJson(text: string): unknown {
  return parsed(text) ?? parsed(text.trimEnd().split('\n').at(-1) ?? '')
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
