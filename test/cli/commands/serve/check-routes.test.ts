import { chmodSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { routeWarnings } from '../../../../src/old/commands/serve/check-routes.js'
import { emptyFolder } from '../../../helpers/context.js'

const cwd = emptyFolder()
const bin = emptyFolder()
for (const file of [path.join(cwd, 'deploy.sh'), path.join(bin, 'notify')]) {
  writeFileSync(file, '#!/bin/sh\n')
  chmodSync(file, 0o755)
}
writeFileSync(path.join(cwd, 'plain.sh'), '')

const ORIGINS = {
  forward: { kind: 'flag', text: '--forward' },
  exec: { kind: 'project', text: 'exec in /home/ada/relay.json' },
} as const

function warnings(routes: { forward?: string[]; exec?: string[]; ignore?: string[] }): string[] {
  const all = { forward: [], exec: [], ignore: [], ...routes }
  return routeWarnings(all, 'github', ORIGINS, { cwd, env: { PATH: bin } })
}

describe('a warning about a route', () => {
  it.each([
    './deploy.sh',
    'push=./deploy.sh now',
    'notify "$RELAY_EVENT"',
    'cd /nowhere && ./deploy.sh',
    '*=NAME=value nothing',
    '"quoted word"',
    '$PROGRAM',
    '(nothing)',
    'if true; then notify; fi',
  ])('is not for the command %s', (exec) => {
    expect(warnings({ exec: [exec] })).toEqual([])
  })

  it.each([
    ['./deply.sh', 'there is no ./deply.sh (did you mean ./deploy.sh?)'],
    ['push=deploy.sh', 'there is no command deploy.sh (did you mean ./deploy.sh?)'],
    ['./plain.sh x', './plain.sh is not executable: chmod +x ./plain.sh'],
    ['notifi', 'there is no command notifi (did you mean notify?)'],
    ['/no/where/at-all; true', 'there is no /no/where/at-all'],
  ])('is for the command %s', (exec, why) => {
    expect(warnings({ exec: [exec] })).toEqual([`exec in /home/ada/relay.json: ${why}`])
  })

  it('is for an event that the code host never sends', () => {
    expect(warnings({ forward: ['pul_request=3000'], ignore: ['check_rum', '*'] })).toEqual([
      '--forward: github sends no event pul_request (did you mean pull_request?)',
      'ignore: github sends no event check_rum (did you mean check_run?)',
    ])
  })

  it.each([
    [
      ['3000', 'http://localhost:3000'],
      'http://localhost:3000 is there twice, and gets each delivery once. Remove one',
    ],
    [
      ['3000', 'push=3000'],
      'deliveries that fit both push and * go twice to http://localhost:3000. Remove one of the routes',
    ],
    [
      ['push=3000', 'push.*=3000'],
      'deliveries that fit both push.* and push go twice to http://localhost:3000. Remove one of the routes',
    ],
  ])('is for %j', (forward, why) => {
    expect(warnings({ forward })).toEqual([`--forward: ${why}`])
  })

  it('is not for different targets or events', () => {
    expect(warnings({ forward: ['3000', '3001', 'push=3002', 'issues=3002'], exec: ['notify'] })).toEqual([])
  })
})
