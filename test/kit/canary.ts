/** Shorter ones are found by chance, or are no secret. */
const MIN_LENGTH = 16

/** Collects secrets, and the places where none of them may be. */
export function canary() {
  const kindOf = new Map<string, string>()
  const texts = new Map<string, string[]>()
  /** A text that anyone may read, and where it is: what a command printed, an answer, a file. */
  const text = (where: string, more: string): void =>
    void texts.set(where, [...(texts.get(where) ?? []), more])
  /** @throws Error for one that is too short to be looked for. */
  const secret = (kind: string, value: string): void => {
    if (value.length < MIN_LENGTH)
      throw new Error(`no secret to look for: ${kind} has ${value.length} characters`)
    kindOf.set(value, kind)
  }
  /** Every text of a place so far, for a test that shows what was searched. */
  const textOf = (where: string): string => (texts.get(where) ?? []).join('\n')
  return {
    secret,
    /** Secrets with their kinds, as `sentSecrets` finds them. */
    secrets(found: Iterable<readonly [value: string, kind: string]>): void {
      for (const [value, kind] of found) secret(kind, value)
    },
    text,
    /** What a command printed. `result` is what it was run for, and is allowed to be there. */
    heard({ out, err }: { readonly out: string; readonly err: string }, result = ''): void {
      text('output', result === '' ? out : out.replaceAll(result, ''))
      text('output', err)
    },
    /** Makes a request, keeps the headers and the body of its answer as texts, and returns the status. */
    async call(url: string, init?: RequestInit): Promise<number> {
      const answer = await fetch(url, { redirect: 'manual', ...init })
      text('answers', JSON.stringify([...answer.headers]))
      text('answers', await answer.text())
      return answer.status
    },
    textOf,
    /** @throws Error if a secret is in a text, if nothing was searched, or if the secrets are not of exactly these kinds. */
    check(kinds: readonly string[]): void {
      const wanted = [...new Set(kinds)].toSorted()
      const there = [...new Set(kindOf.values())].toSorted()
      if (JSON.stringify(there) !== JSON.stringify(wanted))
        throw new Error(`the secrets to look for are ${there.join(', ')}, not ${wanted.join(', ')}`)
      const places = [...texts.keys()]
      const empty = places.filter((where) => textOf(where).trim() === '')
      if (kindOf.size === 0 || places.length === 0 || empty.length > 0)
        throw new Error(
          `nothing was searched: ${kindOf.size} secrets, ${places.length} places, empty: ${empty.join()}`,
        )
      const found = places.flatMap((where) => {
        const all = textOf(where)
        return [...kindOf].flatMap(([value, kind]) =>
          spellings(value).some((each) => all.includes(each)) ? [`${kind} in ${where}`] : [],
        )
      })
      if (found.length > 0) throw new Error(`a secret is where it may not be: ${found.join(', ')}`)
    },
  }
}

/** As it is, as in an address or a form, and as in JSON. */
function spellings(value: string): string[] {
  const form = new URLSearchParams({ '': value }).toString().slice(1)
  return [value, encodeURIComponent(value), form, JSON.stringify(value).slice(1, -1)]
}
