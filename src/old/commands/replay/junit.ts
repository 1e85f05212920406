import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { errorReason } from '../../../base/errno.js'
import { RelayError } from '../../../base/errors.js'
import type { Context } from '../../context.js'
import { formatReason, type Result } from './result.js'

/**
 * Writes the results as JUnit XML, one test case each, and replaces an existing file. `stopped` is the reason for an early end.
 * @throws RelayError `usage` when it cannot be written.
 */
export async function writeJunit(
  { cwd }: Context,
  file: string,
  results: readonly Result[],
  stopped?: RelayError,
): Promise<void> {
  try {
    await writeFile(path.resolve(cwd, file), junit(results, stopped))
  } catch (cause) {
    const code = errorReason(cause)
    throw new RelayError('usage', `--junit: ${file} cannot be written (${code})`, { cause })
  }
}

/** @see https://github.com/testmoapp/junitxml */
function junit(results: readonly Result[], stopped?: RelayError): string {
  const errors = stopped ? 1 : 0
  const failed = results.filter(({ ok }) => !ok).length
  const seconds = results.reduce((sum, { answer }) => sum + answer.ms, 0) / 1000
  const counts = `tests="${results.length + errors}" failures="${failed}" errors="${errors}" time="${seconds.toFixed(3)}"`
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    `<testsuites ${counts}>`,
    `  <testsuite name="relay" ${counts}>`,
    ...results.map(testCase),
    ...(stopped ? [errorCase(stopped)] : []),
    '  </testsuite>',
    '</testsuites>',
    '',
  ].join('\n')
}

function testCase({ name, event, ok, expected, answer }: Result): string {
  const { status, ms } = answer
  const start = `    <testcase name="${escaped(name)}" classname="${escaped(event)}" time="${(ms / 1000).toFixed(3)}"`
  if (ok) return `${start}/>`
  const message = escaped(`expected ${expected}, got ${status ?? 'no answer'}${formatReason(answer)}`)
  return `${start}>\n      <failure message="${message}"/>\n    </testcase>`
}

function errorCase({ message }: RelayError): string {
  return `    <testcase name="stopped" classname="relay" time="0">\n      <error message="${escaped(message)}"/>\n    </testcase>`
}

/** Removes the characters that XML 1.0 cannot contain. */
function escaped(text: string): string {
  return text
    .replaceAll(/[^\t\n\r\u{20}-\u{d7ff}\u{e000}-\u{fffd}\u{10000}-\u{10ffff}]/gu, '')
    .replaceAll(/[&<>"\t\n\r]/g, (char) => `&#${char.codePointAt(0)};`)
}
