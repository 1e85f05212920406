// The hook of loaded.mjs (https://nodejs.org/docs/latest-v20.x/api/module.html#loadurl-context-nextload). It runs in a thread of its own.
import { appendFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

export async function load(url, context, nextLoad) {
  const loaded = await nextLoad(url, context)
  if (url.startsWith('file:')) appendFileSync(process.env.LOADED, `${fileURLToPath(url)}\n`)
  return loaded
}
