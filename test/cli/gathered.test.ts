import { setImmediate as turn } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { gathered } from '../../src/cli/gathered.js'

function rig() {
  const written: string[] = []
  const stream = (name: string) => ({
    isTTY: true,
    columns: 80,
    write: (text: string | Uint8Array) => void written.push(`${name}: ${Buffer.from(text).toString()}`),
  })
  const [out, err] = [stream('out'), stream('err')]
  return { written, out, ...gathered(out, err) }
}

describe('what is written to stdout', () => {
  it('in one turn is one write', async () => {
    const { written, stdout } = rig()
    stdout.write('a')
    stdout.write('b')
    expect(written).toEqual([])
    await turn()
    stdout.write('c')
    await turn()
    expect(written).toEqual(['out: ab', 'out: c'])
  })

  it('stays in order with bytes and with stderr', async () => {
    const { written, stdout, stderr } = rig()
    stdout.write('a')
    stderr.write('b')
    stdout.write('c')
    stdout.write(Buffer.from('d'))
    stdout.write('e')
    await turn()
    expect(written).toEqual(['out: a', 'err: b', 'out: c', 'out: d', 'out: e'])
  })

  it('is as wide as the terminal is now', () => {
    const { stdout, out } = rig()
    out.columns = 120
    expect([stdout.isTTY, stdout.columns]).toEqual([true, 120])
  })
})
