import { createHash } from 'node:crypto'
import { z } from 'zod'
import { fixtureText, toFixture } from '../../src/fixtures/fixture.js'
import { fixtureSchema } from '../../src/fixtures/schema.js'
import { githubDeliveries } from './github.js'
import type { Recording } from './recording.js'

/** Every generated file, by its path from the project's root. Those of Gitea are kept as they were written once, from its source. */
export function fixtureFiles(): ReadonlyMap<string, string> {
  const recordings = githubDeliveries()
  return new Map([
    ['fixtures/fixture.schema.json', `${JSON.stringify(z.toJSONSchema(fixtureSchema), null, 2)}\n`],
    ...recordings.map((one) => [fileOf(one), fixtureText(fixtureOf(one))] as const),
  ])
}

/** Bytes that are not UTF-8 are for relay's own tests: verifiers that take text cannot read them. */
function fileOf({ provider, name, forTests }: Recording): string {
  return `${forTests ? 'test/' : ''}fixtures/${provider}/${name}.json`
}

function fixtureOf({ provider, name, event, body, headers }: Recording) {
  const deliveryId = idOf(`${provider}/${name}`)
  return toFixture({ provider, event, deliveryId, headers: headers(deliveryId), body })
}

/** A UUID (version 8, RFC 9562) that depends only on the name. */
function idOf(name: string): string {
  const hex = createHash('sha256').update(name).digest('hex')
  return hex.replace(/^(.{8})(.{4})(.{3})(.{3})(.{12}).*/, '$1-$2-8$3-a$4-$5')
}
