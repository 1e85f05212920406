import { createHmac } from 'node:crypto'
import { existsSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { expect, it } from 'vitest'
import { secretVariable } from '../kit/delivery.js'
import { emptyFolder } from '../kit/folder.js'
import { codingAgent } from '../kit/mcp.js'
import { place } from '../kit/place.js'
import { receiver, valuesOf } from '../kit/receiver.js'

const SECRET = 's3cret'
const BODY = '{"type":"paid","id":"1"}'

it('relay mcp --serve passes on the answer of a route that the folder names, and runs no command of it', async () => {
  await using here = await place({ host: 'none', env: { [secretVariable('shop')]: SECRET } })
  await using program = await receiver({ status: 202, body: '{"response_action":"clear"}' })
  const cwd = emptyFolder()
  const ran = path.join(emptyFolder(), 'ran')
  writeFileSync(
    path.join(cwd, 'relay.json'),
    JSON.stringify({
      routes: [
        { match: 'shop/void', exec: `touch ${ran}`, reply: '2s' },
        { match: 'shop/*', forward: program.url, reply: '2s' },
      ],
    }),
  )
  const source = 'shop=hmac header=X-Signature event=$.type id=$.id'
  await using agent = await codingAgent({ env: here.env, cwd }, '--serve', '--source', source)
  const { running } = await agent.call('relay_state')
  const address = `${Object(running).url}/webhook/shop`
  const send = async (method: string, body?: string) => {
    const signature = createHmac('sha256', SECRET)
      .update(body ?? '')
      .digest('hex')
    const headers = { 'x-signature': signature, authorization: 'Bearer canary', cookie: 'a=canary' }
    const response = await fetch(address, { method, headers, ...(body !== undefined && { body }) })
    return [response.status, await response.text()]
  }
  const answer = [202, '{"response_action":"clear"}']
  expect(await send('POST', BODY)).toEqual(answer)
  expect(await send('GET')).toEqual(answer)
  expect(await send('POST', BODY.replace('paid', 'void').replace('"1"', '"2"'))).toEqual(answer)
  expect(existsSync(ran)).toBe(false)
  expect(program.received.map(({ method }) => method)).toEqual(['POST', 'GET', 'POST'])
  for (const request of program.received)
    expect(['authorization', 'cookie'].flatMap((name) => valuesOf(request, name))).toEqual([])
})
