/**
 * A value, such as a text, that relay did not make itself: it came from a sender, a target, a code host or a tunnel.
 * JSON has the value itself.
 */
export class Outside<Value = unknown> {
  readonly value: Value

  constructor(value: Value) {
    this.value = value
  }

  toJSON(): Value {
    return this.value
  }
}

/**
 * A text of relay's own, or a name that the user has set. For an agent it still counts as from outside unless it
 * matches the schema of the tool, since a file of the working folder can name things, too.
 */
export class Own {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }

  toString(): string {
    return this.text
  }

  toJSON(): string {
    return this.text
  }
}

/** Marks a value as from outside. Null is unchanged. */
export function outside<Value>(value: Value): Outside<NonNullable<Value>> | Extract<Value, null | undefined>
export function outside(value: unknown): unknown {
  return value === null || value === undefined ? value : new Outside(value)
}

/** Marks a text as relay's own. */
export function own<Text extends string | null | undefined>(
  text: Text,
): (Text extends string ? Own : never) | Exclude<Text, string>
export function own(text: string | null | undefined): unknown {
  return typeof text === 'string' ? new Own(text) : text
}

/** Formats a time in milliseconds since 1970 for programs. */
export const timeField = (at: number): Own => own(new Date(at).toISOString())

/**
 * Type of a value in which each text is a word of a closed list, {@link Own} or {@link Outside}; `never` for any other
 * text.
 */
type Marked<Value> = Value extends Outside | Own | number | boolean | null | undefined
  ? Value
  : Value extends string
    ? string extends Value
      ? never
      : Value
    : Value extends readonly (infer Each)[]
      ? readonly Marked<Each>[]
      : Value extends object
        ? { readonly [Name in keyof Value]: Marked<Value[Name]> }
        : never

declare const MARKED: unique symbol

/** An object for a program in which each text is marked if it came from outside. */
export interface MarkedObject {
  readonly [MARKED]: true
}

/** Checks an object at compile time: each text in it must be marked, or a word of a closed list. */
export function marked<const Value extends object>(object: Value & Marked<Value>): Value & MarkedObject
export function marked(object: object): object {
  return object
}
