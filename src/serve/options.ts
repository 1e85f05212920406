import { abortSignal, anyObject, callback, type Checks, must, optional } from '../base/checks.js'
import { fieldsOf } from '../json/parse.js'
import { RELAY_OPTIONS } from '../relay.js'
import type { ServeOptions } from './serve.js'

const environment = must('an object of texts', (value) => {
  return (
    anyObject(value) === undefined &&
    Object.values(fieldsOf(value)).every((each) => typeof each === 'string' || each === undefined)
  )
})

export const SERVE_OPTIONS: Checks<ServeOptions> = {
  ...RELAY_OPTIONS,
  signal: optional(abortSignal),
  env: optional(environment),
  onListening: optional(callback),
  onAttempt: optional(callback),
  onTarget: optional(callback),
}
