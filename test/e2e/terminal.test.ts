import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import path from 'node:path'
import { expect, it } from 'vitest'
import { emptyFolder } from '../helpers/context.js'
import { describeWith } from '../helpers/needs.js'
import { Program } from '../helpers/program.js'

const PROGRAM = path.resolve('dist/bin/relay.js')

describeWith('tmux', 'relay in a real terminal', () => {
  it('ends with the terminal it was started in, and gives its profile back', async () => {
    const home = emptyFolder()
    const tmux = (...args: string[]): string =>
      execFileSync('tmux', ['-L', path.basename(home), ...args], { encoding: 'utf8' })
    const serve = `RELAY_HOME=${home} "${process.execPath}" "${PROGRAM}" serve --port 0 --quiet --json`
    tmux('new-session', '-d', '-x', '80', '-y', '24', `${serve} | tee ${home}/out`)
    const tail = spawn('tail', ['-F', '-n', '+1', `${home}/out`], { stdio: ['ignore', 'pipe', 'ignore'] })
    const [line] = await once(tail.stdout, 'data')
    tail.kill()
    const { url }: { url: string } = JSON.parse(String(line))
    expect((await fetch(`${url}/health`)).status).toBe(200)
    tmux('kill-server')

    await using next = new Program(['serve', '--port', '0', '--json'], { RELAY_HOME: home })
    await next.url()
    await expect(fetch(`${url}/health`)).rejects.toThrow('fetch failed')
  })
})
