/** GitHub's opaque id of an object. */
export function nodeId(kind: string, id: number): string {
  return Buffer.from(`${kind.length.toString().padStart(2, '0')}:${kind}${id}`).toString('base64')
}
