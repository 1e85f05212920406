import { expect, it } from 'vitest'
import { Secret } from '../../src/base/secret.js'
import { findSandboxClient, saveSandboxClient } from '../../src/sandbox/client.js'
import { openDatabase } from '../../src/store/open.js'

it('is found only by its sandbox’s address', async () => {
  await using database = await openDatabase({ kind: 'memory', folder: '' })
  const { store } = database
  expect(await findSandboxClient(store, 'http://127.0.0.1:1')).toBeUndefined()
  await saveSandboxClient(store, { id: 'app', secret: new Secret('s') }, 'http://127.0.0.1:1')
  const found = await findSandboxClient(store, 'http://127.0.0.1:1')
  expect([found?.id, found?.secret.reveal()]).toEqual(['app', 's'])
  expect(await findSandboxClient(store, 'http://127.0.0.1:2')).toBeUndefined()
})
