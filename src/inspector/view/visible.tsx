/** C0 and C1 controls, DEL, line ends and text direction: they would be invisible, or change how the text around them looks. */
const HIDDEN = /([\p{Cc}\u061c\u200b\u200e\u200f\u2028-\u202e\u2060\u2066-\u2069\ufeff])/u

/** Text from outside in which every invisible character is a visible symbol. It never becomes markup. */
export function Visible({ text }: { readonly text: string }) {
  // With a group in the pattern, each second part is a hidden character.
  const parts = text.split(HIDDEN)
  if (parts.length === 1) return <>{text}</>
  return (
    <>
      {parts.map((part, i) =>
        i % 2 === 0 ? (
          part
        ) : (
          <span class="hidden-char" title={codePoint(part)}>
            {symbolOf(part)}
          </span>
        ),
      )}
    </>
  )
}

/** The symbol of a control character (Unicode block Control Pictures), or its code: `\u{202e}`. */
export function symbolOf(char: string): string {
  const code = char.codePointAt(0) ?? 0
  if (code < 0x20) return String.fromCodePoint(0x2400 + code)
  return code === 0x7f ? '␡' : `\\u{${code.toString(16)}}`
}

function codePoint(char: string): string {
  return `U+${(char.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}`
}
