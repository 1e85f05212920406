import { existsSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { begin, githubDelivery } from '../kit/delivery.js'
import { describeWith } from '../kit/needs.js'
import { Pane } from '../kit/pane.js'
import { place } from '../kit/place.js'
import { isAlive } from '../kit/processes.js'

describe.concurrent('relay serve, asked to stop,', () => {
  it('reloads at SIGHUP, and quits at once at the second signal', async ({ expect }) => {
    await using here = await place({ host: 'none' })
    const program = await here.serveWith({ built: true })
    const hanging = await begin(`${program.address}/webhook`, githubDelivery())
    hanging.on('error', () => {})
    program.kill('SIGHUP')
    await program.says('Reloaded the settings')
    program.kill('SIGTERM')
    await program.says('Finishing in-flight work')
    program.kill('SIGINT')
    expect(await program.ended).toMatchObject({ code: null, signal: 'SIGINT' })
  })
})

describeWith(['Linux', 'mount'], 'where /proc cannot be read', () => {
  it('the end of relay kills a command that ignores SIGTERM', async () => {
    await using here = await place({ host: 'none' })
    const wrapper = ['unshare', '--mount', 'sh', '-c', 'mount -t tmpfs none /proc; exec "$@"', 'sh']
    const file = path.join(here.cwd, 'pid')
    const script = `trap '' TERM; echo $$ > ${file}; while :; do sleep 0.1; done`
    const relay = await here.serveWith({ wrapper }, '--exec', script)
    await relay.deliver()
    await expect.poll(() => existsSync(file) && readFileSync(file, 'utf8')).toMatch(/^\d+\n$/)
    const pid = Number(readFileSync(file, 'utf8'))
    expect((await relay.stop()).code).toBe(0)
    expect(isAlive(pid)).toBe(false)
  })
})

describeWith('tmux', 'relay in a real terminal', () => {
  it('ends with the terminal it was started in, and gives its profile back', async () => {
    await using here = await place({ host: 'none' })
    let address = ''
    {
      const size = { width: 200, height: 24 }
      await using pane = new Pane('relay serve --port 0 --quiet --json', { ...size, env: here.env })
      await pane.shows(/"type":"listening"/)
      address = /"url":"([^"]+)"/.exec(pane.unbroken())?.[1] ?? ''
      expect((await fetch(`${address}/health`)).status).toBe(200)
    }
    await here.serveWith({ built: true })
    await expect(fetch(`${address}/health`)).rejects.toThrow('fetch failed')
  })
})
