/** What smee's server leaves of a body: it parses the JSON, and writes its message from the value. */
export function throughSmee(body: string): { readonly value: unknown } {
  return { value: JSON.parse(JSON.stringify(JSON.parse(body))) }
}

/** What a server leaves that reads forms too, as Express does. */
export function formThroughSmee(body: string): { readonly value: unknown } {
  return { value: Object.fromEntries(new URLSearchParams(body)) }
}
