import { readFileSync } from 'node:fs'
import path from 'node:path'
import { describe, it } from 'vitest'
import { emptyFolder } from '../helpers/context.js'
import { githubDelivery, post, SECRET } from '../helpers/delivery.js'
import { readMetrics } from '../helpers/metrics.js'
import { Program } from '../helpers/program.js'
import { startTarget } from '../helpers/target.js'

const LIST_LOADED = path.resolve('test/helpers/loaded.mjs')

describe.concurrent('relay serve --metrics', () => {
  it('counts from the start; prom-client is loaded then, and only then', async ({ expect }) => {
    const run = async (flags: readonly string[], env: Readonly<Record<string, string>>) => {
      const LOADED = path.join(emptyFolder(), 'loaded')
      await using target = await startTarget()
      await using program = new Program(
        ['serve', '--port', '0', '--json', '--forward', `app=${target.url}`, ...flags],
        { RELAY_WEBHOOK_SECRET: SECRET, LOADED, NODE_OPTIONS: `--import ${LIST_LOADED}`, ...env },
      )
      const url = await program.url()
      expect((await post(`${url}/webhook`, githubDelivery())).status).toBe(200)
      await program.object({ type: 'attempt' })
      const { status } = await fetch(`${url}/metrics`)
      const metrics = status === 200 ? await readMetrics(url) : {}
      expect(await program.stop()).toMatchObject({ code: 0 })
      const isLoaded = /node_modules\/prom-client\//.test(readFileSync(LOADED, 'utf8'))
      return { status, isLoaded, stored: metrics['relay_deliveries_total']?.values['result=stored via=http'] }
    }
    const on = { status: 200, isLoaded: true, stored: 1 }
    const off = { status: 404, isLoaded: false, stored: undefined }
    expect(
      await Promise.all([
        run(['--metrics'], {}),
        run([], { RELAY_METRICS: 'on' }),
        run([], {}),
        run([], { RELAY_METRICS: 'off' }),
      ]),
    ).toEqual([on, on, off, off])
  })
})
