import { once } from 'node:events'
import { type ClientRequest, request } from 'node:http'
import { describe, expect, it } from 'vitest'
import { silentLog } from '../../src/base/log.js'
import { listen } from '../../src/http/listen.js'
import { openJournal } from '../../src/journal/open.js'
import { openDatabase } from '../../src/store/open.js'
import { sign } from '../../src/webhook/signature.js'
import { emptyFolder } from '../helpers/context.js'
import { Program, relay } from '../helpers/program.js'

const SANDBOX = ['serve', '--sandbox', '--port', '0', '--sandbox-port', '0', '--json']
const SERVE = ['serve', '--port', '0', '--json']
const SECRET = 'e2e secret'

function headers(id: string, body: string): Record<string, string> {
  return {
    'Content-Type': 'application/json',
    'X-GitHub-Event': 'push',
    'X-GitHub-Delivery': id,
    'X-Hub-Signature-256': sign(SECRET, Buffer.from(body)),
  }
}

describe('relay serve', () => {
  it('runs the whole service with its sandbox, and stops cleanly', async () => {
    await using program = new Program(SANDBOX)
    const url = await program.url()
    expect(await (await fetch(`${url}/health`)).text()).toBe('{"status":"ok"}')
    expect(await program.object({ event: 'ping' })).toMatchObject({
      v: 1,
      type: 'delivery',
      n: 1,
      provider: 'sandbox',
    })
    const { code, err } = await program.stop('SIGINT')
    expect(code).toBe(0)
    expect(err).toContain(`address       ${url}`)
    expect(err).toMatch(/#1 {2}ping {2}octo\/demo/)
  })

  it('says what is wrong with a setting, exit 2', async () => {
    expect(await relay(['serve', '--port', '70000'])).toEqual({
      code: 2,
      signal: null,
      out: '',
      err: 'error: --port: must be a whole number from 0 to 65535\n',
    })
  })

  it('says that the port is in use, exit 1', async () => {
    const other = await listen(() => new Response(), { host: '127.0.0.1', port: 0, log: silentLog })
    const { code, out, err } = await relay(['serve', '--port', String(other.port)])
    await other.close()
    expect({ code, out }).toEqual({ code: 1, out: '' })
    expect(err).toContain(`port ${other.port} is in use`)
    expect(err).toContain('--port')
  })

  it('leaves a served profile alone, exit 1, and takes over what a killed one left', async () => {
    const home = { RELAY_HOME: emptyFolder() }
    await using first = new Program(SERVE, home)
    const url = await first.url()
    const second = await relay(SERVE, home)
    expect({ code: second.code, out: second.out }).toEqual({ code: 1, out: '' })
    expect(second.err).toContain(url)
    expect(second.err).toContain(String(first.pid))
    expect(await (await fetch(`${url}/health`)).text()).toBe('{"status":"ok"}')

    await first.stop('SIGKILL')
    await using third = new Program(SERVE, home)
    expect(await third.url()).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/)
    expect((await third.stop()).code).toBe(0)
  })

  it('answers a delivery that is under way when it is told to stop, and keeps it', async () => {
    const home = emptyFolder()
    await using program = new Program(SERVE, { RELAY_HOME: home, RELAY_WEBHOOK_SECRET: SECRET })
    const body = '{"kept":true}'
    const delivery = await begin(`${await program.url()}/webhook`, body)
    program.child.kill('SIGTERM')
    await program.says('finishing what is under way')
    delivery.end(body)
    const [response] = await once(delivery, 'response')
    expect(response.statusCode).toBe(200)
    response.resume()
    expect((await program.ended).code).toBe(0)

    await using database = await openDatabase({ kind: 'file', folder: `${home}/default` })
    const entry = openJournal(database).read(1)
    expect(Buffer.from(entry?.body ?? []).toString()).toBe(body)
  })

  it('quits at once at the second signal', async () => {
    await using program = new Program(SERVE, { RELAY_WEBHOOK_SECRET: SECRET })
    const hanging = await begin(`${await program.url()}/webhook`, '1')
    hanging.on('error', () => {})
    program.child.kill('SIGTERM')
    await program.says('finishing what is under way')
    program.child.kill('SIGTERM')
    expect(await program.ended).toMatchObject({ code: null, signal: 'SIGTERM' })
  })
})

/** A signed delivery that the service has begun to read: it has asked for the body, which is still to be sent. */
async function begin(url: string, body: string): Promise<ClientRequest> {
  const delivery = request(url, {
    method: 'POST',
    headers: { ...headers('d-1', body), 'Content-Length': body.length, Expect: '100-continue' },
  })
  delivery.flushHeaders()
  await once(delivery, 'continue')
  return delivery
}
