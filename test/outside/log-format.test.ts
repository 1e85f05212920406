import { describe, expect, it } from 'vitest'
import { mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { githubDelivery, post, SECRET } from '../kit/delivery.js'
import { emptyFolder } from '../kit/folder.js'
import { receiver } from '../kit/receiver.js'
import { run, start } from '../kit/run.js'

const SERVE = ['serve', '--port', '0', '--log-format', 'json']
const LINE = { v: 1, time: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/) }

/** Every line, as an object. Fails for a line that is not JSON. */
function objects(err: string): Record<string, unknown>[] {
  expect(err.endsWith('\n')).toBe(true)
  const lines = err.slice(0, -1).split('\n')
  return lines.map((line): Record<string, unknown> => JSON.parse(line))
}

describe.concurrent('relay serve --log-format json', () => {
  it('prints every message as JSON, without styles or secrets, and nothing on standard output', async ({
    expect,
  }) => {
    await using target = await receiver(410)
    const forward = `app=${target.url.replace('//', '//alice:password-canary@')}?key=query-canary`
    const env = { RELAY_WEBHOOK_SECRET: SECRET, FORCE_COLOR: '1', RELAY_DEBUG: '1', BASE_URL: '/' }
    await using program = start([...SERVE, '--verbose', '--color', 'always', '--forward', forward], { env })
    await program.says('"type":"started"')
    const started = objects(program.err.slice(0, program.err.lastIndexOf('\n') + 1)).find(
      ({ type }) => type === 'started',
    )
    const url = String(started?.['url'])
    expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/)
    const says = { level: 'info', message: 'relay is running', type: 'started', version: expect.any(String) }
    const at = { sandbox: null, provider: 'github', providerUrl: 'https://github.com', sources: [] }
    const own = { profile: 'default', data: expect.stringMatching(/\/default$/), targets: ['app'] }
    expect(started).toEqual({ ...LINE, ...says, ...at, ...own, url, payloadUrl: `${url}/webhook` })
    expect((await post(`${url}/webhook`, githubDelivery({ id: 'first' }))).status).toBe(200)
    await program.says('"type":"attempt"')
    expect((await post(`${url}/webhook`, githubDelivery({ secret: 'another' }))).status).toBe(401)
    await program.says('was answered 401')
    const { code, out, err } = await program.stop()
    expect({ code, out }).toEqual({ code: 0, out: '' })
    const lines = objects(err)
    const any = { ...LINE, level: expect.any(String), message: expect.any(String) }
    for (const line of lines) expect(line).toMatchObject(any)
    expect(lines).toContainEqual(
      expect.objectContaining({ type: 'delivery', level: 'info', n: 1, delivery: 'first' }),
    )
    expect(lines).toContainEqual(
      expect.objectContaining({ type: 'attempt', level: 'warn', name: 'app', status: 410 }),
    )
    const ignored = expect.stringMatching(/^BASE_URL is ignored/)
    expect(lines).toContainEqual(expect.objectContaining({ level: 'warn', message: ignored }))
    expect(err).not.toContain('\u001b')
    for (const secret of [SECRET, 'password-canary', 'query-canary']) expect(err).not.toContain(secret)
  })

  it('leaves standard output to --json', async ({ expect }) => {
    const env = { RELAY_WEBHOOK_SECRET: SECRET, RELAY_LOG_FORMAT: 'json' }
    await using program = start(['serve', '--port', '0', '--json'], { env })
    const url = await program.url()
    expect((await post(`${url}/webhook`, githubDelivery({ id: 'first' }))).status).toBe(200)
    await program.object({ type: 'delivery', delivery: 'first' })
    const { out, err } = await program.stop()
    expect(objects(out).map(({ type }) => type)).toEqual(['listening', 'delivery'])
    expect(objects(err).map(({ type }) => type)).toEqual(expect.arrayContaining(['started', 'delivery']))
  })

  it('reports a failure in the same form, also that the command line is wrong', async ({ expect }) => {
    await using program = start([...SERVE, '--json'])
    const { port } = new URL(await program.url())
    const failures = await Promise.all([
      run(['serve', '--port', port, '--log-format=json']),
      run(['serve', '--port', port], { env: { RELAY_LOG_FORMAT: 'json' } }),
      run([...SERVE, '--nonsense']),
      run([...SERVE, '--forward', 'nonsense']),
    ])
    const failed = (exit: number, code: string, text: string) => {
      const says = expect.stringContaining(text)
      return [exit, '', [{ ...LINE, level: 'error', message: says, type: 'error', code, error: says }]]
    }
    expect(failures.map(({ code, out, err }) => [code, out, objects(err)])).toEqual([
      failed(1, 'unavailable', `Port ${port} is in use`),
      failed(1, 'unavailable', `Port ${port} is in use`),
      failed(2, 'usage', '--nonsense'),
      failed(2, 'settings', '--forward'),
    ])
  })

  it('is a setting of serve alone, which a file can make too', async ({ expect }) => {
    expect((await run(['whoami'], { env: { RELAY_LOG_FORMAT: 'json' } })).err).toMatch(/^error: /)
    const { code, err } = await run(['serve'], { env: { RELAY_LOG_FORMAT: 'xml' } })
    expect([code, err]).toEqual([2, expect.stringContaining('RELAY_LOG_FORMAT: must be')])
    const configFolder = path.join(emptyFolder(), 'relay')
    mkdirSync(configFolder)
    writeFileSync(path.join(configFolder, 'config.json'), '{"logFormat":"json"}')
    await using program = start(['serve', '--port', '0', '--json'], { configFolder })
    await program.url()
    expect(objects((await program.stop()).err)[0]).toMatchObject({ type: 'started' })
  })
})
