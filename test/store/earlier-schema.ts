import { LEASE, MIGRATIONS, REMOVED } from '../../src/store/schema.js'

/** What takes back each of the migrations. */
const UNDO: Readonly<Record<(typeof MIGRATIONS)[number], readonly string[]>> = {
  'ALTER TABLE delivery ADD COLUMN ignored_by TEXT': ['ALTER TABLE delivery DROP COLUMN ignored_by'],
  'ALTER TABLE attempt ADD COLUMN headers TEXT': ['ALTER TABLE attempt DROP COLUMN headers'],
  [REMOVED]: ['DROP INDEX delivery_delivery_id', 'DROP TABLE removed'],
  [LEASE]: ['DROP TABLE lease'],
}

/** The earlier versions of the schema. */
export const EARLIER = MIGRATIONS.map((_, i) => i + 1)

/** The statements that make a database what an earlier version left. */
export function backTo(version: number): readonly string[] {
  const later = MIGRATIONS.slice(version - 1).toReversed()
  return [...later.flatMap((migration) => UNDO[migration]), `UPDATE relay_schema SET version = ${version}`]
}
