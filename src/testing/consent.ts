import { outboundFetch } from '../providers/fetch.js'

export type ConsentButton = 'authorize' | 'cancel'

/**
 * Opens a sandbox's consent page and presses a button there, as a person does in a browser. The address that leads back
 * to the application; empty when there is none, since what asked for consent was refused.
 */
export async function consent(page: string, button: ConsentButton = 'authorize'): Promise<string> {
  const html = await (await outboundFetch(page)).text()
  const [, authenticity = ''] = /name="authenticity_token" value="([^"]+)"/.exec(html) ?? []
  const { origin, pathname } = new URL(page)
  const answer = await outboundFetch(origin + pathname, {
    method: 'POST',
    body: new URLSearchParams({
      authenticity_token: authenticity,
      authorize: button === 'authorize' ? '1' : '0',
    }),
    redirect: 'manual',
  })
  return answer.headers.get('location') ?? ''
}
