import type { Json } from './contract.js'
import type { RecordCipher } from './record-cipher.js'
import type { Sql, Step } from './sql.js'

/** Records that are encrypted again in one step. */
const PAGE = 500

type Row = { readonly key: string; readonly value: string }

/**
 * Encrypts with the current key what is under the previous one, in steps of 500 records, so that the previous key is not needed any
 * more. A record that cannot be decrypted stays as it is: reading it says why.
 * @throws RelayError `storage`
 */
export async function rotate(sql: Sql, cipher: RecordCipher): Promise<void> {
  const { previousPrefix } = cipher
  if (previousPrefix === undefined) return
  for (let after = '', count = PAGE; count === PAGE;) {
    const rows = await sql.query<Row>(
      `SELECT key, value FROM kv WHERE key > ? AND value LIKE ? ORDER BY key LIMIT ${PAGE}`,
      [after, `${previousPrefix}%`],
    )
    const steps = rows.flatMap((row) => encryptAgain(cipher, row))
    if (steps.length > 0) await sql.transaction(steps)
    count = rows.length
    after = rows.at(-1)?.key ?? after
  }
}

export interface KeyUse {
  readonly records: number
  /** Records that are not under the current key. */
  readonly others: number
}

/** How many records are there, and how many need another key. */
export async function countKeyUse(sql: Sql, { currentPrefix }: RecordCipher): Promise<KeyUse> {
  const [use = { records: 0, others: 0 }] = await sql.query<KeyUse>(
    'SELECT count(*) AS records, coalesce(sum(CASE WHEN value LIKE ? THEN 0 ELSE 1 END), 0) AS others FROM kv',
    [`${currentPrefix}%`],
  )
  return use
}

/** A record that was changed meanwhile is under its writer's key. */
function encryptAgain(cipher: RecordCipher, { key, value }: Row): readonly Step[] {
  const decrypted = decryptText(cipher, key, value)
  if (decrypted === undefined) return []
  const again = JSON.stringify(cipher.encrypt(key, decrypted))
  return [{ sql: 'UPDATE kv SET value = ? WHERE key = ? AND value = ?', values: [again, key, value] }]
}

function decryptText(cipher: RecordCipher, key: string, text: string): Json | undefined {
  try {
    const stored: Json = JSON.parse(text)
    return cipher.decrypt(key, stored)
  } catch {
    return undefined
  }
}
