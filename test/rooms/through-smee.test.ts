import { describe, expect, it } from 'vitest'
import { Secret } from '../../src/base/secret.js'
import { indexHeaders } from '../../src/http/headers.js'
import { rowScheme } from '../../src/senders/table.js'
import { schemeOf, senderOf } from '../../src/senders/senders.js'
import { throughSmee } from '../../src/senders/through-smee.js'
import { post } from '../kit/delivery.js'
import { NAMED_SENDERS } from '../kit/named-senders.js'
import { ownRequest } from '../kit/own-senders.js'
import { smee } from '../kit/smee.js'
import { shared } from '../outside/fixture.js'

/** Reads the messages of a channel, one at a time. */
async function messagesOf(channel: string) {
  const { body } = await fetch(channel, { headers: { accept: 'text/event-stream' } })
  const reader = body?.pipeThrough(new TextDecoderStream()).getReader()
  let text = ''
  return async (): Promise<Record<string, unknown>> => {
    for (;;) {
      const [, found] = /^data: (\{.+\})\n\n/m.exec(text) ?? []
      const end = text.indexOf('\n\n')
      if (end !== -1) text = text.slice(end + 2)
      if (found !== undefined && found !== '{}') return JSON.parse(found)
      if (end === -1) text += (await reader?.read())?.value ?? ''
    }
  }
}

describe('what a smee server makes of a sender', () => {
  const server = shared(() => smee())

  it.each(NAMED_SENDERS.map((sender) => [sender.name, sender] as const))(
    'is what its row says: %s',
    async (name, sender) => {
      const scheme = rowScheme(name) ?? schemeOf(name)
      const { arrives, but } = throughSmee(scheme)
      const channel = `${server.url}/${name}-channel`
      const next = await messagesOf(channel)
      const request = ownRequest(sender, Date.now(), channel)
      const { status } = await post(channel + request.query, request)
      const isObject =
        /^\s*\{/.test(String(request.body)) && /^application\/json\b/.test(sender.type ?? 'application/json')
      expect([status === 200, sender.coversBody || arrives === 'none']).toEqual([isObject, true])
      if (arrives === 'none') return
      // Those of which a part is refused say so.
      expect([status === 200 || but.some((each) => each.endsWith('refused'))]).toEqual([true])
      if (status !== 200) return
      const { body: value, query: _, timestamp: __, ...headers } = await next()
      const lines = indexHeaders(Object.entries(headers).map(([each, text]) => [each, String(text)]))
      const secrets = { current: new Secret(sender.secret) }
      const limits = { secrets, maxBody: 1_048_576, payloadUrl: channel, query: request.query.slice(1) }
      const message = { value, length: Number(headers['content-length']) }
      const restored = await senderOf(name).restore(message, lines, limits)
      expect(String(restored && Buffer.from(restored.body))).toBe(String(request.body))
    },
  )
})
