import { execFile } from 'node:child_process'
import path from 'node:path'
import { promisify } from 'node:util'
import { beforeAll, describe, expect, it } from 'vitest'
import { emptyFolder } from '../kit/folder.js'
import { membersOf } from '../kit/published-types.js'

const run = promisify(execFile)

/** What the program has found. */
interface Findings {
  readonly names: Readonly<Record<string, readonly string[]>>
  readonly functions: readonly string[]
  readonly problems: readonly string[]
  readonly refused: number
}

const ofRelay = membersOf('relay.d.ts', 'RelayOptions')
const ofServe = [...ofRelay, ...membersOf('serve/serve.d.ts', 'ServeOptions')]
const ofRoutes = membersOf('base/settings.d.ts', 'RouteSettings')
const ofSettings = [
  ...membersOf('base/settings.d.ts', 'LiveSettings'),
  ...membersOf('base/settings.d.ts', 'Settings'),
]
const ofKit = (name: string): string[] => membersOf('testing/request.d.ts', name)
const ofWait = (name: string): string[] => membersOf('testing/waits.d.ts', name)
const ofFixture = ofKit('FixtureOfOptions')
const ofReceive = membersOf('serve/serve.d.ts', 'ReceiveOptions')
const signal = ['signal']
/** Those that a sandbox of the kit has of any sandbox. */
const ofSandbox = ['client', 'lifetimes', 'log', 'clock', 'port', 'deviceFlow', 'checkDuration']

/** The options of each call, in the published types, so that none is left out. */
const PUBLISHED: Readonly<Record<string, readonly string[]>> = {
  startRelay: [...ofServe, ...ofRoutes, ...membersOf('testing/relay.d.ts', 'TestRelayOptions')],
  startSandbox: [...membersOf('testing/sandbox.d.ts', 'TestSandboxOptions'), ...ofSandbox],
  loadFixture: [...ofKit('LoadFixtureOptions'), ...signal],
  loadFixtures: [...ofKit('LoadFixtureOptions'), ...signal],
  fixtureOf: ofFixture,
  events: ['provider', 'scheme'],
  signedRequest: [...ofKit('SignOptions'), ...ofKit('SignedRequestOptions')],
  deliver: ['set', 'keepId', 'timeout', 'signal', 'until'],
  'deliveries, its filter': ofWait('DeliveryFilter'),
  deliveries: [...ofWait('WaitOptions'), ...signal],
  'nothingMore, its filter': ofWait('DeliveryFilter'),
  nothingMore: [...ofWait('NothingMoreOptions'), ...signal],
  replaceRoutes: ofRoutes,
  serve: ofServe,
  mount: ofServe,
  createRelay: ofRelay,
  'mounted.fetch': ofReceive,
  'mounted.handler': ofReceive,
  'the settings of serve': ofSettings,
  'the settings of mount': ofSettings,
  'the settings of createRelay': ofSettings,
  'the settings of startRelay': ofSettings,
}

const sorted = (names: readonly string[]): string[] => [...new Set(names)].toSorted()

describe('in a program without types', () => {
  let found: Findings
  beforeAll(async () => {
    const program = path.resolve('test/kit/wrong-values.cjs')
    const { stdout } = await run(process.execPath, [program, emptyFolder()], { timeout: 60_000 })
    found = JSON.parse(stdout)
  })

  it('each wrong value of each option is refused at the call, with its name and what is wanted, and nothing starts', () => {
    expect(found.problems).toEqual([])
    expect(found.refused).toBeGreaterThan(6000)
  })

  it('the options are all that are published', () => {
    const named = Object.entries(found.names).map(([call, names]) => [call, sorted(names)])
    const published = Object.entries(PUBLISHED).map(([call, names]) => [call, sorted(names)])
    expect(Object.fromEntries(named)).toEqual(Object.fromEntries(published))
  })

  it('the functions are all that are exported', () => {
    expect(sorted(found.functions)).toEqual([
      'RelayError',
      'Secret',
      'createRelay',
      'events',
      'fixtureOf',
      'loadFixture',
      'loadFixtures',
      'mount',
      'publicKeyOf',
      'serve',
      'signedRequest',
      'startRelay',
      'startSandbox',
    ])
  })
})
