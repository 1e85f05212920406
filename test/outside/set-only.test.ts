import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { expect, it } from 'vitest'
import { place } from '../kit/place.js'
import { receiver } from '../kit/receiver.js'
import { shopFixture } from '../kit/shop-fixture.js'

const BODY = String.raw`{"id":12345678901234567890,"price":1.0,"e":1e5,"u":"https:\/\/x","c":"caf\u00e9", "2":1,"1":[ 2 , {"note":"b"}],
  "note":"a","note":"last", "deep":{"list":[[1],[{"a":1.50}]]}}`

it.each([
  ['note="z"', '"note":"last"', '"note":"z"'],
  ['1[1].note=7', '{"note":"b"}', '{"note":7}'],
  ['1[0]=null', '[ 2 ,', '[ null ,'],
  ['deep.list[1][0].a=2', '"a":1.50', '"a":2'],
  ['deep={"b":[1]}', '{"list":[[1],[{"a":1.50}]]}', '{"b":[1]}'],
  ['$.price=3', '"price":1.0', '"price":3'],
])('--set-only %s changes the bytes of that member alone', async (edit, old, changed) => {
  await using here = await place({ host: 'none', env: { RELAY_SOURCE_SHOP_SECRET: 's3cret' } })
  await using target = await receiver()
  writeFileSync(path.join(here.cwd, 'f.json'), JSON.stringify(shopFixture(BODY)))
  const argv = ['replay', 'f.json', '--source', 'shop', '--set-only', edit, '--to', target.url]
  const ran = await here.runWith({ env: { RELAY_SOURCES: 'shop=shopify' } }, ...argv)
  expect([ran.code, ran.err]).toEqual([0, expect.any(String)])
  expect(target.received.map(({ body }) => body.toString())).toEqual([BODY.replace(old, () => changed)])
})
