import { copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { emptyFolder } from '../../helpers/context.js'

export const DAMAGES = ['zeroed pages', 'random bytes', 'truncated', 'swapped pages', 'damaged log'] as const
export type Damage = (typeof DAMAGES)[number]

/** Of the database, in bytes. */
const PAGE = 8192

/** Numbers that are the same in every run: xorshift32. */
export function randomNumbers(seed: number): (below: number) => number {
  let state = Math.imul(seed, 0x9e37_79b1)
  return (below) => {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    return (state >>> 0) % below
  }
}

/** A copy of a profile's folder with that damage; the same for the same seed. */
export function damagedCopy(folder: string, damage: Damage, seed: number): string {
  const copy = path.join(emptyFolder(), 'profile')
  mkdirSync(copy)
  for (const name of ['relay.db', 'relay.db-wal'])
    if (existsSync(path.join(folder, name))) copyFileSync(path.join(folder, name), path.join(copy, name))
  const file = path.join(copy, damage === 'damaged log' ? 'relay.db-wal' : 'relay.db')
  writeFileSync(file, damaged(readFileSync(file), damage, randomNumbers(seed)))
  return copy
}

function damaged(bytes: Buffer, damage: Damage, random: (below: number) => number): Buffer {
  const pages = Math.floor(bytes.length / PAGE)
  const page = (n: number): Buffer => bytes.subarray(n * PAGE, (n + 1) * PAGE)
  if (damage === 'truncated') return bytes.subarray(0, random(bytes.length))
  // From one place to about one in fifty pages. Of the log nothing counts after the first damage.
  const places = damage === 'damaged log' ? 1 : 1 + random(Math.ceil(pages / 50))
  for (let i = 0; i < places; i++) {
    const at = random(pages)
    if (damage === 'zeroed pages') page(at).fill(0)
    else if (damage === 'swapped pages') {
      const kept = Buffer.from(page(at))
      const other = random(pages)
      page(other).copy(bytes, at * PAGE)
      kept.copy(bytes, other * PAGE)
    } else for (let k = 0; k < 8; k++) bytes[at * PAGE + random(PAGE)] = random(256)
  }
  return bytes
}
