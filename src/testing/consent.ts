import { readText, sendOnce } from '../net/client.js'

export type ConsentButton = 'authorize' | 'cancel'

/**
 * Opens a sandbox's consent page and submits its form like a browser. Returns the URL that redirects to the application;
 * empty when the sandbox refused the authorize request.
 */
export async function consent(page: string, button: ConsentButton = 'authorize'): Promise<string> {
  const html = await readText(await sendOnce(page, { method: 'GET', headers: {} }))
  const [, authenticity = ''] = /name="authenticity_token" value="([^"]+)"/.exec(html) ?? []
  const { origin, pathname } = new URL(page)
  const fields = { authenticity_token: authenticity, authorize: button === 'authorize' ? '1' : '0' }
  const { header, discard } = await sendOnce(origin + pathname, formOf(fields))
  discard()
  return header('location') ?? ''
}

/** A request that posts a form. */
export function formOf(fields: Readonly<Record<string, string>>) {
  return {
    method: 'POST',
    headers: { accept: 'application/json', 'content-type': 'application/x-www-form-urlencoded' },
    body: String(new URLSearchParams(fields)),
  } as const
}
