import { readFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { emptyFolder } from '../helpers/context.js'
import { startTarget } from '../helpers/target.js'
import { createRig } from './rig.js'

const JSON_TEXT = '{"action":"opened","zen":"caf\u00e9 & more"}'

describe('a delivery that comes as a form', () => {
  it('gives commands its JSON, and addresses the bytes as sent', async () => {
    await using server = await startTarget()
    const file = path.join(emptyFolder(), 'stdin')
    await using rig = await createRig({
      forward: [server.url],
      exec: ['cat > "$FILE"'],
      env: { PATH: process.env['PATH'], FILE: file },
    })
    const body = new URLSearchParams({ payload: JSON_TEXT }).toString()
    await rig.receive({ body, type: 'application/x-www-form-urlencoded' })
    await rig.dispatcher.idle()
    expect([readFileSync(file, 'utf8'), server.received[0]?.body.toString()]).toEqual([JSON_TEXT, body])
  })
})
