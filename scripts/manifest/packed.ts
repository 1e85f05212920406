/** Fields that only work on relay itself needs. */
const OWN: ReadonlySet<string> = new Set(['scripts', 'devDependencies', 'allowScripts'])

/** The text of the package.json that is packed, from that of the repository. */
export function packedManifest(text: string): string {
  const manifest: Record<string, unknown> = JSON.parse(text)
  const packed = Object.entries(manifest).filter(([field]) => !OWN.has(field))
  return `${JSON.stringify(Object.fromEntries(packed), null, 2)}\n`
}
